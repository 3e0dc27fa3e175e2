// The edges of one direction in a chunk file: edge chunk (span, panel) holds every tile from that
// source span into the panel's destination blocks; chunks lie span after span, panel after panel.
// In edges.out, which serves the gradients of src, "source" and "destination" are swapped.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "storage/chunk_file.h"
#include "storage/tensor_layout.h"
#include "storage/tile.h"

namespace ooc {

struct Edge {
  VertexId source = 0;
  VertexId destination = 0;

  bool operator==(const Edge&) const = default;
};

// How the edges of a dataset are cut; the same for both directions.
struct EdgeLayout {
  std::int64_t vertices = 0;
  std::int64_t edges = 0;
  std::int64_t block_rows = 0;    // a power of two
  std::int64_t span_rows = 0;     // block_rows times a power of two, at most 65,536
  std::int64_t panel_blocks = 0;  // destination blocks in a panel

  std::int64_t span_count() const { return ceil_div(vertices, span_rows); }
  std::int64_t block_count() const { return ceil_div(vertices, block_rows); }
  std::int64_t panel_count() const { return ceil_div(block_count(), panel_blocks); }
  std::int64_t chunk_count() const { return span_count() * panel_count(); }

  bool operator==(const EdgeLayout&) const = default;
};

// The sparser the graph, the wider the span; panels such that an average edge chunk has 4 MiB.
EdgeLayout choose_edge_layout(std::int64_t vertices, std::int64_t edges, std::int64_t block_rows);

// The order of edges in a file: by source span, then destination, then source.
class EdgeFileOrder {
 public:
  // `span_rows` is a power of two, so a span is a shift.
  explicit EdgeFileOrder(std::int64_t span_rows)
      : span_bits_(std::countr_zero(static_cast<std::uint64_t>(span_rows))) {}
  bool operator()(const Edge& a, const Edge& b) const {
    const std::int64_t span_a = a.source >> span_bits_, span_b = b.source >> span_bits_;
    if (span_a != span_b) return span_a < span_b;
    if (a.destination != b.destination) return a.destination < b.destination;
    return a.source < b.source;
  }

 private:
  int span_bits_;
};

// Writes edges that arrive in EdgeFileOrder. One thread.
class EdgeFileWriter {
 public:
  EdgeFileWriter(FileSystem& files, const std::string& path, const EdgeLayout& layout);
  void add(const Edge& edge);
  ChunkFileInfo finish();

 private:
  void end_tile();
  void end_chunk();

  EdgeLayout layout_;
  ChunkFileWriter file_;
  int block_bits_, span_bits_;
  std::int64_t next_chunk_ = 0;   // the chunk being filled
  std::int64_t tile_block_ = -1;  // destination block of the tile being filled
  std::int64_t added_ = 0;
  std::int64_t chunk_edges_ = 0;
  std::vector<LocalEdge> tile_edges_;
  std::vector<std::byte> headers_;  // TileHeaders, offsets counted from the first tile
  std::vector<std::byte> tiles_;
};

// The tiles of one edge chunk; they point into the mapping.
struct PanelTile {
  std::int64_t block;  // destination block in the graph
  TileView tile;
};

class EdgeFile {
 public:
  // DataError if the file isn't the edges of this layout.
  EdgeFile(FileSystem& files, const std::string& path, VerifyPolicy verify,
           const EdgeLayout& layout);
  const EdgeLayout& layout() const { return layout_; }
  const ChunkFileReader& file() const { return file_; }
  // Tiles in order of their block. On a chunk's first read its structure is checked as well as its
  // checksum: DataError. Many threads.
  std::vector<PanelTile> tiles(std::int64_t span, std::int64_t panel) const;
  std::uint64_t chunk_bytes(std::int64_t span, std::int64_t panel) const {
    return file_.entry(static_cast<std::uint64_t>(span * layout_.panel_count() + panel)).bytes;
  }
  // Of all edge chunks: what one propagation reads.
  std::uint64_t payload_bytes() const;

 private:
  void check_structure(std::int64_t chunk, std::span<const PanelTile> tiles) const;
  [[noreturn]] void corrupt(std::string_view what, std::int64_t chunk) const;

  ChunkFileReader file_;
  EdgeLayout layout_;
  VerifyPolicy verify_;
};

}  // namespace ooc
