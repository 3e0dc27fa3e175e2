// The edges of one direction in a chunk file: edge chunk (span, panel) holds every tile from that
// source span into the panel's destination blocks; chunks lie span after span, panel after panel.
// In edges.out, which serves the gradients of src, "source" and "destination" are swapped.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/format/chunk_file.h"
#include "storage/format/edge_key.h"
#include "storage/format/edge_layout.h"
#include "storage/format/format.h"
#include "storage/format/tensor_layout.h"
#include "storage/format/tile.h"

namespace ooc {

// The sparser the graph, the wider the span; panels such that an average edge chunk has 1 MiB: who
// wants a part of the destinations reads little beside it.
EdgeLayout choose_edge_layout(std::int64_t vertices, std::int64_t edges, std::int64_t block_rows);

// Encoded tiles of one edge chunk, beside each other.
struct EncodedTiles {
  std::vector<TileHeader> headers;  // offsets count from the start of `bytes`
  std::vector<std::byte> bytes;
  std::int64_t edges = 0;

  bool operator==(const EncodedTiles&) const = default;
};

// Cuts the edges of one chunk, which arrive in order of their keys, into encoded tiles.
class TileEncoder {
 public:
  // The layout must outlive it.
  explicit TileEncoder(const EdgeLayout& layout);
  // `data`: layout.data.bytes() that the edge carries.
  void add(const Edge& edge, const std::byte* data) {
    const std::int64_t block = edge.destination >> block_bits_;
    if (block != block_) {
      end_tile();
      block_ = block;
    }
    edges_.push_back({static_cast<std::uint16_t>(edge.destination & (layout_.block_rows - 1)),
                      static_cast<std::uint16_t>(edge.source & (layout_.span_rows - 1))});
    if (data_bytes_ > 0) data_.insert(data_.end(), data, data + data_bytes_);
  }
  EncodedTiles finish();

 private:
  void end_tile();

  const EdgeLayout& layout_;
  int block_bits_;
  std::size_t data_bytes_;
  std::int64_t block_ = -1;  // of the tile being filled
  std::vector<LocalEdge> edges_;
  std::vector<std::byte> data_;
  EncodedTiles tiles_;
};

// Writes chunk after chunk from encoded tiles. One thread.
class EdgeFileWriter {
 public:
  // `layout.edges` need not be known yet.
  EdgeFileWriter(FileSystem& files, const std::string& path, const EdgeLayout& layout);
  // Tiles of `chunk`, or more of them; chunks ascend, and the tiles' blocks inside a chunk.
  void add(std::int64_t chunk, EncodedTiles tiles);
  ChunkFileInfo finish();
  std::int64_t edges() const { return edges_; }  // added so far
  // A writer of the file `path` that has been given what this one has.
  std::unique_ptr<EdgeFileWriter> fork(const std::string& path, const Control& control) const;

 private:
  EdgeFileWriter(const EdgeLayout& layout, std::unique_ptr<ChunkFileWriter> file);
  void end_chunk();

  EdgeLayout layout_;
  std::unique_ptr<ChunkFileWriter> file_;
  std::int64_t next_chunk_ = 0;       // the chunk being filled
  std::vector<EncodedTiles> pieces_;  // of it
  std::int64_t edges_ = 0;
};

class EdgeFile {
 public:
  // DataError if the file isn't the edges of this layout.
  EdgeFile(FileSystem& files, const std::string& path, VerifyPolicy verify,
           const EdgeLayout& layout);
  // One that isn't there, of these bytes by chunk: to simulate with.
  EdgeFile(const EdgeLayout& layout, const std::vector<std::int64_t>& chunk_bytes);
  const EdgeLayout& layout() const { return layout_; }
  const ChunkFileReader& file() const { return file_; }
  std::int64_t chunk_of(std::int64_t span, std::int64_t panel) const {
    return span * layout_.panel_count() + panel;
  }
  // Tiles in order of their block. On a chunk's first read its structure is checked as well as its
  // checksum: DataError. Many threads.
  std::vector<PanelTile> tiles(std::int64_t span, std::int64_t panel) const;
  // The same of a chunk's bytes that were read otherwise (storage/stores/direct_chunk_reader.h).
  std::vector<PanelTile> tiles(std::int64_t chunk, std::span<const std::byte> payload) const;
  std::uint64_t chunk_bytes(std::int64_t span, std::int64_t panel) const {
    return file_.entry(static_cast<std::uint64_t>(chunk_of(span, panel))).bytes;
  }
  // Of all edge chunks: what one propagation reads.
  std::uint64_t payload_bytes() const;

 private:
  std::vector<PanelTile> tiles_of(std::int64_t chunk, std::span<const std::byte> payload,
                                  bool check) const;
  void check_directory(std::int64_t chunk, std::span<const std::byte> payload) const;
  void check_structure(std::int64_t chunk, std::span<const PanelTile> tiles) const;
  [[noreturn]] void corrupt(std::string_view what, std::int64_t chunk) const;

  ChunkFileReader file_;
  EdgeLayout layout_;
};

}  // namespace ooc
