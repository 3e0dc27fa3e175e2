// What the steps of sampling_bench share.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdio>

#include "storage/base/aligned_vector.h"
#include "storage/dataset/dataset.h"

namespace ooc::bench {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline void report(const char* step, double seconds, double count, const char* of) {
  fmt::print("{{\"step\": \"{}\", \"seconds\": {:.3f}, \"{}\": {:.0f}, \"ns_each\": {:.2f}}}\n",
             step, seconds, of, count, seconds / count * 1e9);
  std::fflush(stdout);
}

// A vertex, a batch and a number in it as one word, in this order.
struct Keys {
  int vertex_bits, batch_bits;
  int local_bits() const { return 64 - vertex_bits - batch_bits; }
  std::uint64_t key(std::uint64_t vertex, std::uint64_t batch, std::uint64_t local) const {
    return vertex << (64 - vertex_bits) | batch << local_bits() | local;
  }
  std::uint64_t vertex(std::uint64_t key) const { return key >> (64 - vertex_bits); }
  std::uint64_t batch(std::uint64_t key) const { return key << vertex_bits >> (64 - batch_bits); }
  std::uint64_t local(std::uint64_t key) const {
    return key & ((std::uint64_t{1} << local_bits()) - 1);
  }
};

using Words = AlignedVector<std::uint64_t>;

// Rows of those asked for, by (vertex, batch): hot ones stay where they are, the others go into the
// files of their batches. Prints what it took.
void pack(const Dataset& dataset, const Keys& keys, const Words& all, std::int64_t batches,
          double hot_share, bool disk);

}  // namespace ooc::bench
