#include "storage/format/tile.h"

#include <algorithm>
#include <cstring>

#include "storage/base/errors.h"

namespace ooc {
namespace {

std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

struct Counts {
  std::uint32_t rows = 0;
  std::uint32_t escapes = 0;
};

Counts count(std::span<const LocalEdge> edges) {
  Counts counts;
  std::uint32_t row = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    // No branch: of sampled edges it would often be mispredicted.
    counts.rows += static_cast<std::uint32_t>((i == 0) | (edges[i].row != row));
    if (edges[i].row - row >= kRowEscape) ++counts.escapes;
    row = edges[i].row;
  }
  return counts;
}

// `at` points at the tile's bytes, which are large enough and zero.
void encode_runs(std::span<const LocalEdge> edges, std::uint32_t row_count, std::byte* at) {
  auto* const ends = reinterpret_cast<std::uint32_t*>(at);
  auto* const rows = reinterpret_cast<std::uint16_t*>(ends + row_count);
  std::uint16_t* const sources = rows + row_count;
  std::uint32_t run = 0;
  for (std::uint32_t i = 0; i < edges.size(); ++i) {
    if (i > 0 && edges[i].row != edges[i - 1].row) ends[run++] = i;
    rows[run] = edges[i].row;
    sources[i] = edges[i].source;
  }
  ends[run] = static_cast<std::uint32_t>(edges.size());
}

void encode_pairs(std::span<const LocalEdge> edges, std::uint32_t escape_count, std::byte* at) {
  auto* const sources = reinterpret_cast<std::uint16_t*>(at);
  std::uint16_t* escapes = sources + edges.size();
  auto* const deltas = reinterpret_cast<std::uint8_t*>(escapes + escape_count);
  std::uint32_t row = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const std::uint32_t delta = edges[i].row - row;
    if (delta >= kRowEscape) *escapes++ = edges[i].row;
    deltas[i] = static_cast<std::uint8_t>(std::min<std::uint32_t>(delta, kRowEscape));
    sources[i] = edges[i].source;
    row = edges[i].row;
  }
}

// Copies `bytes` out of each record into a column that is padded to 8 bytes.
void append_column(std::span<const std::byte> records, std::size_t record_bytes, std::size_t offset,
                   std::size_t bytes, std::vector<std::byte>& out) {
  const std::size_t count = records.size() / record_bytes;
  const std::size_t begin = out.size();
  out.resize(begin + padded(count * bytes));
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(out.data() + begin + i * bytes, records.data() + i * record_bytes + offset, bytes);
  }
}

}  // namespace

std::uint64_t tile_data_bytes(const EdgeData& data, std::uint64_t edge_count) {
  return (data.weights ? padded(edge_count * sizeof(float)) : 0) +
         (data.types ? padded(edge_count * sizeof(std::uint16_t)) : 0) +
         padded(edge_count * data.feature_bytes());
}

// Writes at 8-byte multiples of `out`, which vectors align at least as far.
TileView encode_tile(std::span<const LocalEdge> edges, std::vector<std::byte>& out) {
  OOC_CHECK(!edges.empty() && edges.size() <= UINT32_MAX && out.size() % 8 == 0);
  const Counts counts = count(edges);
  TileView tile;
  tile.edge_count = static_cast<std::uint32_t>(edges.size());
  const std::uint64_t runs = tile_bytes(TileEncoding::kRuns, edges.size(), counts.rows, 0);
  const std::uint64_t pairs = tile_bytes(TileEncoding::kPairs, edges.size(), 0, counts.escapes);
  const std::size_t begin = out.size();
  out.resize(begin + std::min(runs, pairs));
  if (runs <= pairs) {
    tile.encoding = TileEncoding::kRuns;
    tile.row_count = counts.rows;
    encode_runs(edges, counts.rows, out.data() + begin);
  } else {
    tile.encoding = TileEncoding::kPairs;
    tile.escape_count = counts.escapes;
    encode_pairs(edges, counts.escapes, out.data() + begin);
  }
  return tile;
}

void encode_tile_data(std::span<const std::byte> records, const EdgeData& data,
                      std::vector<std::byte>& out) {
  const std::size_t bytes = data.bytes();
  if (data.weights) append_column(records, bytes, 0, sizeof(float), out);
  if (data.types) append_column(records, bytes, data.type_offset(), sizeof(std::uint16_t), out);
  if (data.feature_cols > 0) {
    append_column(records, bytes, data.feature_offset(), data.feature_bytes(), out);
  }
}

void attach_tile(TileView& tile, const std::byte* bytes, const EdgeData& data) {
  if (tile.encoding == TileEncoding::kRuns) {
    tile.ends = reinterpret_cast<const std::uint32_t*>(bytes);
    tile.rows = reinterpret_cast<const std::uint16_t*>(tile.ends + tile.row_count);
    tile.sources = tile.rows + tile.row_count;
  } else {
    tile.sources = reinterpret_cast<const std::uint16_t*>(bytes);
    tile.escapes = tile.sources + tile.edge_count;
    tile.deltas = reinterpret_cast<const std::uint8_t*>(tile.escapes + tile.escape_count);
  }
  bytes += tile_bytes(tile.encoding, tile.edge_count, tile.row_count, tile.escape_count);
  if (data.weights) {
    tile.weights = reinterpret_cast<const float*>(bytes);
    bytes += padded(tile.edge_count * sizeof(float));
  }
  if (data.types) {
    tile.types = reinterpret_cast<const std::uint16_t*>(bytes);
    bytes += padded(tile.edge_count * sizeof(std::uint16_t));
  }
  if (data.feature_cols > 0) tile.features = reinterpret_cast<const float*>(bytes);
}

std::string_view validate_tile(const TileView& tile, std::int64_t block_rows,
                               std::int64_t span_rows) {
  if (tile.encoding == TileEncoding::kRuns) {
    std::uint32_t end = 0;
    for (std::uint32_t i = 0; i < tile.row_count; ++i) {
      if (tile.ends[i] <= end || tile.ends[i] > tile.edge_count) return "row ends do not ascend";
      if (i > 0 && tile.rows[i] <= tile.rows[i - 1]) return "rows do not ascend";
      end = tile.ends[i];
    }
    if (end != tile.edge_count) return "row ends do not cover the edges";
  } else {
    std::uint32_t escapes = 0;
    for (std::uint32_t i = 0; i < tile.edge_count; ++i) escapes += tile.deltas[i] == kRowEscape;
    if (escapes != tile.escape_count) return "wrong number of row escapes";
  }
  std::string_view wrong;
  std::int64_t last_row = 0, last_source = -1, row = 0;
  std::uint32_t escape = 0, run = 0;
  for (std::uint32_t edge = 0; edge < tile.edge_count; ++edge) {
    if (tile.encoding == TileEncoding::kRuns) {
      if (edge == tile.ends[run]) ++run;
      row = tile.rows[run];
    } else {
      // Not for_each_edge: a wrong delta must not wrap to a valid row.
      const std::uint8_t delta = tile.deltas[edge];
      row = delta == kRowEscape ? tile.escapes[escape++] : row + delta;
    }
    const std::int64_t source = tile.sources[edge];
    if (row >= block_rows) wrong = "a row lies outside its block";
    if (source >= span_rows) wrong = "a source lies outside its span";
    if (row < last_row) wrong = "rows do not ascend";
    if (row == last_row && source < last_source) wrong = "sources of a row do not ascend";
    last_source = source;
    last_row = row;
  }
  return wrong;
}

}  // namespace ooc
