// Small seeded graphs for tests.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "storage/format/edge_file.h"

namespace ooc::test {

// `count` edges with ends drawn uniformly; parallel edges and self loops occur.
inline std::vector<Edge> random_edges(std::int64_t vertices, std::int64_t count,
                                      std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::int64_t> vertex(0, vertices - 1);
  std::vector<Edge> edges(static_cast<std::size_t>(count));
  for (Edge& edge : edges) {
    edge.source = vertex(random);
    edge.destination = vertex(random);
  }
  return edges;
}

// Each edge in both directions: a symmetric graph.
inline std::vector<Edge> with_reverse(std::vector<Edge> edges) {
  const std::size_t count = edges.size();
  for (std::size_t i = 0; i < count; ++i) edges.push_back({edges[i].destination, edges[i].source});
  return edges;
}

}  // namespace ooc::test
