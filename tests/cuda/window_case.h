// Edges of a window, as chunk files have them, for tests of a GPU's edge kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "kernels/spec/compute_shape.h"
#include "storage/format/edge_layout.h"
#include "storage/format/format.h"

namespace ooc::test {

using Bytes = std::vector<std::byte>;

template <class T>
void append(Bytes& bytes, const T& value) {
  const auto* at = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), at, at + sizeof value);
}

// An edge chunk of tiles by block of the panel, whose edges weigh what `weight` says.
inline Bytes chunk_of(const std::map<std::uint16_t, std::vector<LocalEdge>>& tiles,
                      const EdgeData& data, std::mt19937& random,
                      std::set<TileEncoding>& encodings) {
  Bytes headers, body;
  const std::size_t header_bytes = sizeof(EdgeChunkHeader) + tiles.size() * sizeof(TileHeader);
  append(headers, EdgeChunkHeader{static_cast<std::uint32_t>(tiles.size()), 0});
  for (const auto& [block, edges] : tiles) {
    TileHeader header{.block = block, .offset = header_bytes + body.size()};
    const TileView tile = encode_tile(edges, body);
    header.encoding = static_cast<std::uint16_t>(tile.encoding);
    header.edge_count = tile.edge_count;
    header.row_count = tile.row_count;
    header.escape_count = tile.escape_count;
    encodings.insert(tile.encoding);
    append(headers, header);
    Bytes weights;
    for (std::size_t i = 0; data.weights && i < edges.size(); ++i) {
      append(weights, static_cast<float>(random() % 1000) / 8);
    }
    encode_tile_data(weights, data, body);
  }
  headers.insert(headers.end(), body.begin(), body.end());
  return headers;
}

struct WindowCase {
  EdgeLayout layout;
  std::int64_t panel = 0;
  std::vector<Bytes> chunks;                      // by span
  std::vector<std::vector<std::uint8_t>> splits;  // by span; empty: every edge is taken
  std::vector<std::uint64_t> loops;               // empty: no edges are added
  std::set<TileEncoding> encodings;
};

// Two panels of two blocks, of which the last one isn't whole; blocks without edges, rows without,
// hubs, parallel edges, gaps that only an escape takes.
inline WindowCase make_case(std::int64_t block_rows, int edges, bool weights, bool train,
                            bool loops, unsigned seed) {
  WindowCase made;
  made.layout = {.vertices = 4 * block_rows - block_rows / 3,
                 .edges = 0,
                 .block_rows = block_rows,
                 .span_rows = 2 * block_rows,
                 .panel_blocks = 2,
                 .data = {.weights = weights}};
  std::mt19937 random(seed);
  made.panel = 1;
  for (std::int64_t span = 0; span < made.layout.span_count(); ++span) {
    std::map<std::uint16_t, std::vector<LocalEdge>> tiles;
    for (std::uint16_t block = 0; block < 2; ++block) {
      if (seed % 3 == 0 && span == 0 && block == 0) continue;
      const std::int64_t rows =
          std::min(block_rows, made.layout.vertices - (2 + block) * block_rows);
      const std::int64_t sources =
          std::min(made.layout.span_rows, made.layout.vertices - span * made.layout.span_rows);
      std::vector<LocalEdge>& list = tiles[block];
      const int count = span == 0 ? edges : edges / 40 + 1;  // dense, then sparse
      for (int e = 0; e < count; ++e) {
        const bool hub = e % 5 == 0 && span == 0;
        list.push_back({static_cast<std::uint16_t>(hub ? 7 % rows : random() % rows),
                        static_cast<std::uint16_t>(random() % sources)});
        if (e % 9 == 0) list.push_back(list.back());
      }
      std::sort(list.begin(), list.end(), [](LocalEdge a, LocalEdge b) {
        return a.row != b.row ? a.row < b.row : a.source < b.source;
      });
    }
    made.chunks.push_back(chunk_of(tiles, made.layout.data, random, made.encodings));
    made.splits.emplace_back();
    for (std::int64_t i = 0; train && i < made.layout.span_rows; ++i) {
      made.splits.back().push_back(static_cast<std::uint8_t>(random() % 4));
    }
  }
  for (std::int64_t i = 0; loops && i < ceil_div(made.layout.vertices, 64); ++i) {
    made.loops.push_back(std::uint64_t{random()} << 32 | random());
  }
  return made;
}

}  // namespace ooc::test
