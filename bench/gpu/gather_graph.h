// Graphs for gather_bench: drawn with skewed degrees from a seed, kept as two raw files that
// cuSPARSE's side reads, too.
#pragma once

#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace ooc::bench {

// The in-edges of every vertex, sources ascending.
struct Graph {
  std::vector<std::int64_t> starts;      // [vertices + 1]
  std::vector<std::int32_t> neighbours;  // [edges]

  std::int64_t vertices() const { return std::ssize(starts) - 1; }
  std::int64_t edges() const { return std::ssize(neighbours); }
};

// Both ends of an edge are drawn alike: the vertex at place floor(V u^k) of a shuffled list, u
// uniform. The first place expects E V^(-1/k) in-edges, and k is such that these are `hub`.
class SkewedEdges {
 public:
  SkewedEdges(std::int64_t vertices, std::int64_t edges, std::int64_t hub, std::uint64_t seed)
      : edges_(edges), seed_(seed), order_(static_cast<std::size_t>(vertices)) {
    const auto count = static_cast<double>(vertices);
    skew_ = std::log(count) / std::log(static_cast<double>(edges) / static_cast<double>(hub));
    std::iota(order_.begin(), order_.end(), 0);
    std::mt19937_64 random(seed);
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
  }

  // Calls visit(source, destination) for each edge, from many threads.
  template <class Visit>
  void for_each(Visit&& visit) const {
    constexpr std::int64_t kParts = 256;
    tbb::parallel_for(std::int64_t{0}, kParts, [&](std::int64_t part) {
      std::mt19937_64 random(seed_ * kParts + static_cast<std::uint64_t>(part) + 1);
      const std::int64_t end = edges_ * (part + 1) / kParts;
      for (std::int64_t edge = edges_ * part / kParts; edge < end; ++edge) {
        const std::int32_t source = draw(random);
        visit(source, draw(random));
      }
    });
  }

 private:
  std::int32_t draw(std::mt19937_64& random) const {
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
    const double place = static_cast<double>(order_.size()) * std::pow(uniform, skew_);
    return order_[std::min(static_cast<std::size_t>(place), order_.size() - 1)];
  }

  std::int64_t edges_;
  std::uint64_t seed_;
  double skew_ = 1;
  std::vector<std::int32_t> order_;
};

inline Graph draw_graph(std::int64_t vertices, std::int64_t edges, std::int64_t hub,
                        std::uint64_t seed) {
  const SkewedEdges drawn(vertices, edges, hub, seed);
  Graph graph;
  graph.starts.resize(static_cast<std::size_t>(vertices) + 1);
  graph.neighbours.resize(static_cast<std::size_t>(edges));
  drawn.for_each([&](std::int32_t, std::int32_t destination) {
    std::atomic_ref(graph.starts[static_cast<std::size_t>(destination) + 1])
        .fetch_add(1, std::memory_order_relaxed);
  });
  std::partial_sum(graph.starts.begin(), graph.starts.end(), graph.starts.begin());
  std::vector<std::int64_t> next(graph.starts.begin(), graph.starts.end() - 1);
  drawn.for_each([&](std::int32_t source, std::int32_t destination) {
    const std::int64_t at = std::atomic_ref(next[static_cast<std::size_t>(destination)])
                                .fetch_add(1, std::memory_order_relaxed);
    graph.neighbours[static_cast<std::size_t>(at)] = source;
  });
  tbb::parallel_for(std::int64_t{0}, vertices, [&](std::int64_t row) {
    const auto at = graph.starts.begin() + row;
    std::sort(graph.neighbours.begin() + at[0], graph.neighbours.begin() + at[1]);
  });
  return graph;
}

template <class T>
void write_array(const std::string& path, const std::vector<T>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(T)));
  if (!file.flush()) throw std::runtime_error("can't write " + path);
}

template <class T>
std::vector<T> read_array(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<T> values(file ? static_cast<std::size_t>(file.tellg()) / sizeof(T) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(T)));
  if (!file) throw std::runtime_error("can't read " + path);
  return values;
}

inline void write_graph(const std::string& directory, const Graph& graph) {
  write_array(directory + "/starts.bin", graph.starts);
  write_array(directory + "/neighbours.bin", graph.neighbours);
}

inline Graph read_graph(const std::string& directory) {
  return {read_array<std::int64_t>(directory + "/starts.bin"),
          read_array<std::int32_t>(directory + "/neighbours.bin")};
}

}  // namespace ooc::bench
