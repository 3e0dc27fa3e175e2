#include "storage/format/edge_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr double kEdgeBytes = 2.7;  // about what a tile spends on an edge
constexpr double kEdgeChunkBytes = 1 << 20;

ChunkFileShape shape_of(const EdgeLayout& layout) {
  ChunkFileShape shape;
  shape.kind = ChunkFileKind::kEdges;
  shape.rows = static_cast<std::uint64_t>(layout.vertices);
  shape.cols = static_cast<std::uint64_t>(layout.edges);
  shape.block_rows = static_cast<std::uint64_t>(layout.block_rows);
  shape.blocks_per_chunk = static_cast<std::uint64_t>(layout.panel_blocks);
  shape.span_rows = static_cast<std::uint64_t>(layout.span_rows);
  shape.chunk_count = static_cast<std::uint64_t>(layout.chunk_count());
  shape.edge_data = (layout.data.weights ? kEdgeWeights : 0) | (layout.data.types ? kEdgeTypes : 0);
  shape.slice_width = static_cast<std::uint64_t>(layout.data.feature_cols);
  return shape;
}

}  // namespace

EdgeLayout choose_edge_layout(std::int64_t vertices, std::int64_t edges, std::int64_t block_rows) {
  EdgeLayout layout{vertices, edges, block_rows, 0, 0, {}};
  // S = the power of two at or above 4 V / degree = 4 V^2 / E.
  const double wanted = edges == 0 ? static_cast<double>(kMaxBlockRows)
                                   : 4.0 * static_cast<double>(vertices) *
                                         static_cast<double>(vertices) / static_cast<double>(edges);
  layout.span_rows = block_rows;
  while (layout.span_rows < kMaxBlockRows && static_cast<double>(layout.span_rows) < wanted) {
    layout.span_rows *= 2;
  }
  const double tile_bytes = kEdgeBytes * static_cast<double>(edges) /
                            static_cast<double>(layout.span_count() * layout.block_count());
  const double blocks = kEdgeChunkBytes / std::max(tile_bytes, 1.0);
  layout.panel_blocks = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(blocks), 1, std::min<std::int64_t>(layout.block_count(), 65536));
  return layout;
}

TileEncoder::TileEncoder(const EdgeLayout& layout)
    : layout_(layout),
      block_bits_(std::countr_zero(static_cast<std::uint64_t>(layout.block_rows))),
      data_bytes_(layout.data.bytes()) {}

void TileEncoder::end_tile() {
  if (edges_.empty()) return;
  TileHeader header{};
  header.offset = tiles_.bytes.size();
  const TileView tile = encode_tile(edges_, tiles_.bytes);
  encode_tile_data(data_, layout_.data, tiles_.bytes);
  header.block = static_cast<std::uint16_t>(block_ % layout_.panel_blocks);
  header.encoding = static_cast<std::uint16_t>(tile.encoding);
  header.edge_count = tile.edge_count;
  header.row_count = tile.row_count;
  header.escape_count = tile.escape_count;
  tiles_.headers.push_back(header);
  tiles_.edges += tile.edge_count;
  edges_.clear();
  data_.clear();
}

EncodedTiles TileEncoder::finish() {
  end_tile();
  return std::exchange(tiles_, {});
}

EdgeFileWriter::EdgeFileWriter(FileSystem& files, const std::string& path, const EdgeLayout& layout)
    : EdgeFileWriter(layout, std::make_unique<ChunkFileWriter>(files, path, shape_of(layout))) {}

EdgeFileWriter::EdgeFileWriter(const EdgeLayout& layout, std::unique_ptr<ChunkFileWriter> file)
    : layout_(layout), file_(std::move(file)) {
  OOC_CHECK(std::has_single_bit(static_cast<std::uint64_t>(layout.block_rows)) &&
            std::has_single_bit(static_cast<std::uint64_t>(layout.span_rows)) &&
            layout.span_rows >= layout.block_rows && layout.span_rows <= kMaxBlockRows);
}

void EdgeFileWriter::add(std::int64_t chunk, EncodedTiles tiles) {
  OOC_CHECK(chunk >= next_chunk_ && chunk < layout_.chunk_count());
  while (next_chunk_ < chunk) end_chunk();
  edges_ += tiles.edges;
  if (!tiles.headers.empty()) pieces_.push_back(std::move(tiles));
}

void EdgeFileWriter::end_chunk() {
  EdgeChunkHeader chunk{};
  std::vector<TileHeader> headers;
  std::uint64_t edges = 0;
  for (const EncodedTiles& piece : pieces_) {
    chunk.tile_count += static_cast<std::uint32_t>(piece.headers.size());
    edges += static_cast<std::uint64_t>(piece.edges);
  }
  headers.reserve(chunk.tile_count);
  std::uint64_t offset = sizeof(chunk) + chunk.tile_count * sizeof(TileHeader);
  std::vector<std::span<const std::byte>> parts;
  if (!pieces_.empty()) parts = {std::as_bytes(std::span(&chunk, 1)), {}};
  for (const EncodedTiles& piece : pieces_) {
    for (TileHeader header : piece.headers) {
      header.offset += offset;
      headers.push_back(header);
    }
    offset += piece.bytes.size();
    parts.emplace_back(piece.bytes);
  }
  if (!pieces_.empty()) parts[1] = std::as_bytes(std::span(headers));
  file_->write_next(parts, edges);
  pieces_.clear();
  ++next_chunk_;
}

ChunkFileInfo EdgeFileWriter::finish() {
  while (next_chunk_ < layout_.chunk_count()) end_chunk();
  return file_->finish(static_cast<std::uint64_t>(edges_));
}

std::unique_ptr<EdgeFileWriter> EdgeFileWriter::fork(const std::string& path,
                                                     const Control& control) const {
  std::unique_ptr<EdgeFileWriter> copy(new EdgeFileWriter(layout_, file_->fork(path, control)));
  copy->next_chunk_ = next_chunk_;
  copy->pieces_ = pieces_;
  copy->edges_ = edges_;
  return copy;
}

EdgeFile::EdgeFile(FileSystem& files, const std::string& path, VerifyPolicy verify,
                   const EdgeLayout& layout)
    : file_(files, path, ChunkFileKind::kEdges, verify), layout_(layout) {
  if (file_.shape() != shape_of(layout)) {
    throw DataError(
        fmt::format("edge file has {} vertices and {} edges, the manifest {} and {}",
                    file_.shape().rows, file_.shape().cols, layout.vertices, layout.edges),
        path, "import the dataset again");
  }
}

namespace {

std::vector<ChunkIndexEntry> index_of(const std::vector<std::int64_t>& chunk_bytes) {
  std::vector<ChunkIndexEntry> index(chunk_bytes.size());
  for (std::size_t i = 0; i < index.size(); ++i) {
    index[i].bytes = static_cast<std::uint64_t>(chunk_bytes[i]);
  }
  return index;
}

}  // namespace

EdgeFile::EdgeFile(const EdgeLayout& layout, const std::vector<std::int64_t>& chunk_bytes)
    : file_(shape_of(layout), index_of(chunk_bytes)), layout_(layout) {}

void EdgeFile::corrupt(std::string_view what, std::int64_t chunk) const {
  throw DataError(fmt::format("edge chunk {}: {}", chunk, what),
                  fmt::format("{}, offset {}", file_.path(),
                              file_.entry(static_cast<std::uint64_t>(chunk)).offset),
                  "import the dataset again");
}

std::uint64_t EdgeFile::payload_bytes() const {
  std::uint64_t bytes = 0;
  for (std::uint64_t chunk = 0; chunk < file_.shape().chunk_count; ++chunk) {
    bytes += file_.entry(chunk).bytes;
  }
  return bytes;
}

std::vector<PanelTile> EdgeFile::tiles(std::int64_t span, std::int64_t panel) const {
  const std::int64_t chunk = chunk_of(span, panel);
  const bool check = file_.needs_verify(static_cast<std::uint64_t>(chunk));
  return tiles_of(chunk, file_.chunk(static_cast<std::uint64_t>(chunk)), check);
}

std::vector<PanelTile> EdgeFile::tiles(std::int64_t chunk,
                                       std::span<const std::byte> payload) const {
  const bool check = file_.needs_verify(static_cast<std::uint64_t>(chunk));
  file_.verify(static_cast<std::uint64_t>(chunk), payload);
  return tiles_of(chunk, payload, check);
}

std::vector<PanelTile> EdgeFile::tiles_of(std::int64_t index, std::span<const std::byte> payload,
                                          bool check) const {
  check_directory(index, payload);
  std::vector<PanelTile> tiles = panel_tiles(layout_, index % layout_.panel_count(), payload);
  if (check) check_structure(index, tiles);
  return tiles;
}

void EdgeFile::check_directory(std::int64_t index, std::span<const std::byte> payload) const {
  if (payload.empty()) return;
  if (payload.size() < sizeof(EdgeChunkHeader)) corrupt("its header is truncated", index);
  EdgeChunkHeader header;
  std::memcpy(&header, payload.data(), sizeof(header));
  if (header.tile_count > (payload.size() - sizeof(header)) / sizeof(TileHeader)) {
    corrupt("its tile headers are truncated", index);
  }
  for (std::uint32_t i = 0; i < header.tile_count; ++i) {
    TileHeader found;
    std::memcpy(&found, payload.data() + sizeof(header) + i * sizeof(found), sizeof(found));
    const auto encoding = static_cast<TileEncoding>(found.encoding);
    if (encoding != TileEncoding::kRuns && encoding != TileEncoding::kPairs) {
      corrupt("a tile has an unknown encoding", index);
    }
    const std::uint64_t bytes =
        tile_bytes(encoding, found.edge_count, found.row_count, found.escape_count) +
        tile_data_bytes(layout_.data, found.edge_count);
    if (found.offset % 8 != 0 || found.offset > payload.size() ||
        bytes > payload.size() - found.offset) {
      corrupt("a tile lies outside its chunk", index);
    }
  }
}

void EdgeFile::check_structure(std::int64_t chunk, std::span<const PanelTile> tiles) const {
  const std::int64_t span = chunk / layout_.panel_count();
  const std::int64_t panel = chunk % layout_.panel_count();
  const std::int64_t end_block =
      std::min((panel + 1) * layout_.panel_blocks, layout_.block_count());
  const std::int64_t sources =
      std::min(layout_.span_rows, layout_.vertices - span * layout_.span_rows);
  std::int64_t last_block = -1;
  std::uint64_t edges = 0;
  for (const auto& [block, tile] : tiles) {
    if (block <= last_block) corrupt("its tiles are out of order", chunk);
    if (block >= end_block) corrupt("a tile lies outside its panel", chunk);
    last_block = block;
    const std::int64_t rows =
        std::min(layout_.block_rows, layout_.vertices - block * layout_.block_rows);
    const std::string_view wrong = validate_tile(tile, rows, sources);
    if (!wrong.empty()) corrupt(wrong, chunk);
    edges += tile.edge_count;
  }
  if (edges != file_.entry(static_cast<std::uint64_t>(chunk)).items) {
    corrupt("its tiles hold another number of edges than its index says", chunk);
  }
}

}  // namespace ooc
