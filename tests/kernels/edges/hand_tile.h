// Tiles made by hand, and small graphs of them, for tests of what walks over edges.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "storage/format/tile.h"

namespace ooc::testing {

// Holds the arrays of one tile, built without the encoder of storage/. What its edges carry is
// filled in by the test.
struct HandTile {
  std::vector<std::uint32_t> ends;
  std::vector<std::uint16_t> rows;
  std::vector<std::uint16_t> sources;
  std::vector<std::uint16_t> escapes;
  std::vector<std::uint8_t> deltas;
  std::vector<float> weights, features;
  std::vector<std::uint16_t> types;
  TileEncoding encoding = TileEncoding::kRuns;

  HandTile(const std::vector<LocalEdge>& edges, TileEncoding tile_encoding)
      : encoding(tile_encoding) {
    std::uint16_t previous = 0;
    for (const LocalEdge& edge : edges) {
      sources.push_back(edge.source);
      if (encoding == TileEncoding::kRuns) {
        if (rows.empty() || rows.back() != edge.row) {
          rows.push_back(edge.row);
          ends.push_back(0);
        }
        ends.back() = static_cast<std::uint32_t>(sources.size());
        continue;
      }
      const int delta = edge.row - previous;
      deltas.push_back(static_cast<std::uint8_t>(std::min<int>(delta, kRowEscape)));
      if (delta >= kRowEscape) escapes.push_back(edge.row);
      previous = edge.row;
    }
  }

  TileView view() const {
    return {.encoding = encoding,
            .edge_count = static_cast<std::uint32_t>(sources.size()),
            .row_count = static_cast<std::uint32_t>(rows.size()),
            .escape_count = static_cast<std::uint32_t>(escapes.size()),
            .ends = ends.data(),
            .rows = rows.data(),
            .sources = sources.data(),
            .escapes = escapes.data(),
            .deltas = deltas.data(),
            .weights = weights.data(),
            .types = types.data(),
            .features = features.data()};
  }
};

struct Graph {
  std::int64_t rows = 0;
  std::int64_t span_rows = 0;
  std::vector<std::vector<LocalEdge>> spans;  // sorted edges of every span
};

// Skewed rows (some long runs), parallel edges, empty rows, gaps of more than 255 rows.
inline Graph random_graph(std::int64_t rows, std::int64_t span_rows, int edges, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  Graph graph = {rows, span_rows, {}};
  for (int span = 0; span < 3; ++span) {
    std::vector<LocalEdge> list;
    for (int e = 0; e < edges; ++e) {
      const double skewed = std::pow(uniform(engine), 4);
      list.push_back(
          {static_cast<std::uint16_t>(skewed * static_cast<double>(rows)),
           static_cast<std::uint16_t>(uniform(engine) * static_cast<double>(span_rows))});
      if (e % 10 == 0) list.push_back(list.back());
    }
    list.push_back({static_cast<std::uint16_t>(rows - 1), 0});
    std::sort(list.begin(), list.end(), [](LocalEdge a, LocalEdge b) {
      return a.row != b.row ? a.row < b.row : a.source < b.source;
    });
    graph.spans.push_back(std::move(list));
  }
  return graph;
}

}  // namespace ooc::testing
