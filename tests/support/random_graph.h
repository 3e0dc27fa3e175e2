// Small seeded graphs for tests.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/spec/random.h"
#include "storage/format/edge_file.h"

namespace ooc::test {

// A generator of the standard library's kind that costs nothing to seed.
class SplitMix {
 public:
  using result_type = std::uint64_t;
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() { return mix64(state_ += 0x9E3779B97F4A7C15); }

 private:
  std::uint64_t state_;
};

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
