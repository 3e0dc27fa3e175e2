#include "storage/tile.h"

#include <algorithm>
#include <cstring>

#include "storage/errors.h"

namespace ooc {
namespace {

std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

template <class T>
void append(std::vector<std::byte>& out, const std::vector<T>& values) {
  const std::size_t at = out.size();
  out.resize(at + values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(out.data() + at, values.data(), values.size() * sizeof(T));
}

struct Counts {
  std::uint32_t rows = 0;
  std::uint32_t escapes = 0;
};

Counts count(std::span<const LocalEdge> edges) {
  Counts counts;
  std::uint32_t row = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (i == 0 || edges[i].row != edges[i - 1].row) ++counts.rows;
    if (edges[i].row - row >= kRowEscape) ++counts.escapes;
    row = edges[i].row;
  }
  return counts;
}

void encode_runs(std::span<const LocalEdge> edges, std::vector<std::byte>& out) {
  std::vector<std::uint32_t> ends;
  std::vector<std::uint16_t> rows, sources;
  for (const LocalEdge& edge : edges) {
    if (rows.empty() || rows.back() != edge.row) {
      rows.push_back(edge.row);
      ends.push_back(0);
    }
    sources.push_back(edge.source);
    ends.back() = static_cast<std::uint32_t>(sources.size());
  }
  append(out, ends);
  append(out, rows);
  append(out, sources);
}

void encode_pairs(std::span<const LocalEdge> edges, std::vector<std::byte>& out) {
  std::vector<std::uint16_t> sources, escapes;
  std::vector<std::uint8_t> deltas;
  std::uint32_t row = 0;
  for (const LocalEdge& edge : edges) {
    const std::uint32_t delta = edge.row - row;
    if (delta >= kRowEscape) escapes.push_back(edge.row);
    deltas.push_back(static_cast<std::uint8_t>(delta >= kRowEscape ? kRowEscape : delta));
    sources.push_back(edge.source);
    row = edge.row;
  }
  append(out, sources);
  append(out, escapes);
  append(out, deltas);
}

}  // namespace

std::uint64_t tile_bytes(TileEncoding encoding, std::uint64_t edge_count, std::uint64_t row_count,
                         std::uint64_t escape_count) {
  return encoding == TileEncoding::kRuns ? padded(row_count * 6 + edge_count * 2)
                                         : padded(edge_count * 3 + escape_count * 2);
}

TileView encode_tile(std::span<const LocalEdge> edges, std::vector<std::byte>& out) {
  OOC_CHECK(edges.size() <= UINT32_MAX);
  const Counts counts = count(edges);
  TileView tile;
  tile.edge_count = static_cast<std::uint32_t>(edges.size());
  const std::uint64_t runs = tile_bytes(TileEncoding::kRuns, edges.size(), counts.rows, 0);
  const std::uint64_t pairs = tile_bytes(TileEncoding::kPairs, edges.size(), 0, counts.escapes);
  const std::size_t begin = out.size();
  if (runs <= pairs) {
    tile.encoding = TileEncoding::kRuns;
    tile.row_count = counts.rows;
    encode_runs(edges, out);
  } else {
    tile.encoding = TileEncoding::kPairs;
    tile.escape_count = counts.escapes;
    encode_pairs(edges, out);
  }
  out.resize(begin + std::min(runs, pairs));
  return tile;
}

void attach_tile(TileView& tile, const std::byte* bytes) {
  if (tile.encoding == TileEncoding::kRuns) {
    tile.ends = reinterpret_cast<const std::uint32_t*>(bytes);
    tile.rows = reinterpret_cast<const std::uint16_t*>(tile.ends + tile.row_count);
    tile.sources = tile.rows + tile.row_count;
    return;
  }
  tile.sources = reinterpret_cast<const std::uint16_t*>(bytes);
  tile.escapes = tile.sources + tile.edge_count;
  tile.deltas = reinterpret_cast<const std::uint8_t*>(tile.escapes + tile.escape_count);
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
