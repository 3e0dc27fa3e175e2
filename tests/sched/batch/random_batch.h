// Batches with random edges, for tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "sched/batch/batch_graph.h"
#include "tests/support/random_graph.h"

namespace ooc::test {

struct RandomBatch {
  std::vector<std::int64_t> level_rows;
  EdgeData data;
  std::vector<BatchEdge> edges;  // with parallel edges and loops
  std::vector<std::byte> records;
  std::vector<std::uint64_t> loops;  // bits of vertices with a loop among the edges
  std::vector<int> segments;         // by edge

  BatchEdges from() const { return {level_rows, edges, data, records, loops}; }
  std::int64_t edges_up_to(int level) const {
    return std::count_if(segments.begin(), segments.end(), [&](int s) { return s <= level; });
  }
  bool has_loop(std::int64_t row) const {
    return (loops[static_cast<std::size_t>(row / 64)] >> (row % 64) & 1) != 0;
  }
  float weight(std::size_t edge) const {
    float weight = 0;
    std::memcpy(&weight, records.data() + edge * data.bytes(), sizeof(weight));
    return weight;
  }
};

// `fan_out`: edges into each vertex below the last level. The weight of an edge is its number, or
// in (0, 1) where `small_weights`; its type the number modulo 7.
inline RandomBatch random_batch(std::vector<std::int64_t> level_rows, int fan_out,
                                std::uint64_t seed, EdgeData data = {},
                                bool small_weights = false) {
  RandomBatch batch{std::move(level_rows), data, {}, {}, {}, {}};
  SplitMix random(seed);
  const auto hops = batch.level_rows.size() - 1;
  batch.loops.resize(static_cast<std::size_t>(batch.level_rows.back() / 64 + 1));
  std::int64_t row = 0;
  for (std::size_t segment = 0; segment < hops; ++segment) {
    for (; row < batch.level_rows[segment]; ++row) {
      std::vector<std::uint32_t> sources;
      for (int i = 0; i < fan_out; ++i) {
        const auto bound = static_cast<std::uint64_t>(batch.level_rows[segment + 1]);
        sources.push_back(static_cast<std::uint32_t>(random() % bound));
        if (random() % 8 == 0) sources.push_back(sources.back());
        if (random() % 16 == 0) sources.push_back(static_cast<std::uint32_t>(row));
      }
      if (random() % 10 == 0) sources.clear();
      std::sort(sources.begin(), sources.end());
      for (const std::uint32_t source : sources) {
        batch.edges.push_back({static_cast<std::uint32_t>(row), source});
        batch.segments.push_back(static_cast<int>(segment));
        if (source == row) {
          batch.loops[static_cast<std::size_t>(row / 64)] |= std::uint64_t{1} << (row % 64);
        }
      }
    }
  }
  for (std::size_t i = 0; i < batch.edges.size(); ++i) {
    const auto weight =
        small_weights ? static_cast<float>(i % 97 + 1) / 98.0f : static_cast<float>(i);
    const auto type = static_cast<std::uint16_t>(i % 7);
    std::byte record[6];
    if (data.weights) std::memcpy(record, &weight, sizeof(weight));
    if (data.types) std::memcpy(record + data.type_offset(), &type, sizeof(type));
    batch.records.insert(batch.records.end(), record, record + data.bytes());
  }
  return batch;
}

}  // namespace ooc::test
