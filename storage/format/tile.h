// A tile: the edges from one source span into one destination block, grouped by destination row,
// sources ascending inside a row. Ids are local: a row inside its block, a source inside its span,
// both 16 bits. Kernels read tiles straight from the file's bytes through TileView.
//
// Two encodings, whichever is smaller for the tile:
//   kRuns:  ends u32[row_count] | rows u16[row_count] | sources u16[edge_count]
//           rows[i] has the edges sources[ends[i-1] .. ends[i]); rows ascend, none is empty.
//   kPairs: sources u16[edge_count] | escapes u16[escape_count] | deltas u8[edge_count]
//           row of edge e = row of edge e-1 (0 at first) + deltas[e]; the delta 255 takes the next
//           escape as the absolute row instead.
// What the edges carry follows, in the same order of edges, each column padded to 8 bytes:
//   weights fp32[edge_count] | types u16[edge_count] | features fp32[edge_count x feature_cols]
// A tile starts 8-byte aligned, is padded with zeros to a multiple of 8 bytes and little-endian.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/base/types.h"

namespace ooc {

enum class TileEncoding : std::uint16_t { kRuns = 1, kPairs = 2 };

inline constexpr std::uint8_t kRowEscape = 255;

// What every edge of a graph carries beside its two ends.
struct EdgeData {
  bool weights = false;
  bool types = false;
  std::int64_t feature_cols = 0;

  // Of one edge's data on its way into a tile: weight fp32, type u16, features fp32, no padding.
  std::size_t bytes() const { return feature_offset() + feature_bytes(); }
  std::size_t type_offset() const { return weights ? sizeof(float) : 0; }
  std::size_t feature_offset() const { return type_offset() + (types ? sizeof(std::uint16_t) : 0); }
  std::size_t feature_bytes() const {
    return static_cast<std::size_t>(feature_cols) * sizeof(float);
  }
  bool operator==(const EdgeData&) const = default;
};

struct TileView {
  TileEncoding encoding = TileEncoding::kRuns;
  std::uint32_t edge_count = 0;
  std::uint32_t row_count = 0;     // kRuns
  std::uint32_t escape_count = 0;  // kPairs
  const std::uint32_t* ends = nullptr;
  const std::uint16_t* rows = nullptr;
  const std::uint16_t* sources = nullptr;
  const std::uint16_t* escapes = nullptr;
  const std::uint8_t* deltas = nullptr;
  const float* weights = nullptr;  // null where the graph has none; so types and features
  const std::uint16_t* types = nullptr;
  const float* features = nullptr;  // an edge's feature_cols beside each other
};

// One edge of a tile under construction.
struct LocalEdge {
  std::uint16_t row;
  std::uint16_t source;
};

// Appends the encoding of `edges` (sorted by row, then source) to `out`, padded to 8 bytes.
// Returns a view whose pointers are null (they belong to whoever holds the bytes).
TileView encode_tile(std::span<const LocalEdge> edges, std::vector<std::byte>& out);
// Appends what these edges carry: `records` holds data.bytes() for each, in the same order.
void encode_tile_data(std::span<const std::byte> records, const EdgeData& data,
                      std::vector<std::byte>& out);

// Bytes of an encoded tile with these counts, padding included, without what its edges carry.
constexpr std::uint64_t tile_bytes(TileEncoding encoding, std::uint64_t edge_count,
                                   std::uint64_t row_count, std::uint64_t escape_count) {
  const std::uint64_t bytes = encoding == TileEncoding::kRuns ? row_count * 6 + edge_count * 2
                                                              : edge_count * 3 + escape_count * 2;
  return (bytes + 7) / 8 * 8;
}
// Bytes of what so many edges carry, padding included.
std::uint64_t tile_data_bytes(const EdgeData& data, std::uint64_t edge_count);

// Points `tile` (counts and encoding set) at its bytes.
void attach_tile(TileView& tile, const std::byte* bytes, const EdgeData& data = {});

// Empty if every row is below block_rows, every source below span_rows and the order holds;
// otherwise what is wrong.
std::string_view validate_tile(const TileView& tile, std::int64_t block_rows,
                               std::int64_t span_rows);

// Calls visit(row, source) for every edge, in order.
template <class Visit>
void for_each_edge(const TileView& tile, Visit&& visit) {
  if (tile.encoding == TileEncoding::kRuns) {
    std::uint32_t edge = 0;
    for (std::uint32_t i = 0; i < tile.row_count; ++i) {
      for (; edge < tile.ends[i]; ++edge) visit(tile.rows[i], tile.sources[edge]);
    }
    return;
  }
  std::uint32_t row = 0;
  std::uint32_t escape = 0;
  for (std::uint32_t edge = 0; edge < tile.edge_count; ++edge) {
    const std::uint8_t delta = tile.deltas[edge];
    row = delta == kRowEscape ? tile.escapes[escape++] : row + delta;
    visit(static_cast<std::uint16_t>(row), tile.sources[edge]);
  }
}

}  // namespace ooc
