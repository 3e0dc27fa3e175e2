// What identifies an edge whatever the order of vertices is: its original source id, its original
// destination id, both below 2^32, and its index among parallel edges: columns 0, 1 and 2 of the
// operand K of operators on edges.
#pragma once

#include <cstdint>

#include "kernels/spec/host_device.h"
#include "kernels/spec/random.h"

namespace ooc {

// A number for an edge among those of one destination, above 0. The smallest source has the
// smallest one; parallel edges from the 2^24th on share theirs.
OOC_HOST_DEVICE inline std::int64_t winner_key(std::int64_t source, std::int64_t index) {
  constexpr std::int64_t kLastIndex = (std::int64_t{1} << 24) - 1;
  return (source << 24 | (index < kLastIndex ? index : kLastIndex)) + 1;
}

// The key of an operator's masks of edges in one epoch: a stream apart from those of vertices.
OOC_HOST_DEVICE inline std::uint64_t edge_mask_key(std::uint64_t seed, std::uint64_t epoch,
                                                   std::uint32_t op) {
  return mix64(epoch_key(seed, epoch) ^ (std::uint64_t{op} << 32 | 0xED6Eu));
}

inline constexpr int kHeadsPerCounter = 4;

// The random words of heads 4 * group to 4 * group + 3 of `Lanes` edges: words[head % 4][edge]. On
// entry words[0] holds the sources, words[1] the destinations, words[2] the indices.
template <int Lanes>
OOC_HOST_DEVICE inline void edge_mask_words(std::uint64_t key, std::uint32_t group,
                                            std::uint32_t (&words)[4][Lanes]) {
  for (int lane = 0; lane < Lanes; ++lane) words[3][lane] = group;
  philox4x32<Lanes>(words, key);
}

}  // namespace ooc
