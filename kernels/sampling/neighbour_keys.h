// Keys by which a vertex takes the in-edges with the smallest ones. A key is a function of who asks
// and of the source's name alone, so neither order nor threads matter, and a vertex may be offered
// its in-edges bit by bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/spec/random.h"

namespace ooc {

// The `parallel`-th edge from the source among those with the same ends.
inline std::uint64_t edge_name(std::uint32_t source, std::uint32_t parallel) {
  return mix64(source | std::uint64_t{parallel} << 32);
}

// Uniform on 64 bits, and the same for all who share `stream`: layer-neighbour sampling, in which
// vertices of a batch take the same sources (LABOR: Balin and Catalyurek, NeurIPS 2023, with as
// many edges as are asked for instead of a threshold).
inline std::uint64_t source_key(std::uint64_t stream, std::uint64_t edge_name) {
  return mix64(stream ^ edge_name);
}

// Of such a key, so that an edge's chance goes by its weight (Efraimidis and Spirakis, IPL 97(5),
// 2006): -log(u) / weight, as bits that sort alike. Of a weight that isn't above 0: the largest
// key, which is never taken.
inline constexpr std::uint64_t kNeverTaken = ~std::uint64_t{0};
inline double uniform_of(std::uint64_t source_key) {
  return (static_cast<double>(source_key >> 11) + 0.5) * 0x1p-53;
}
inline std::uint64_t weighted_key(std::uint64_t source_key, float weight) {
  if (!(weight > 0)) return kNeverTaken;
  const double key = -std::log(uniform_of(source_key)) / static_cast<double>(weight);
  return std::bit_cast<std::uint64_t>(key + 0.0);  // of u = 1: no -0
}
// Whether it is sure to be above `limit`, which most are: without a logarithm, by
// -log(u) >= 1 - u. Never of a limit that isn't such a key.
inline bool is_weighted_key_above(std::uint64_t limit, std::uint64_t source_key, float weight) {
  constexpr double kRounded = 1 + 1e-9;
  return 1 - uniform_of(source_key) >
         std::bit_cast<double>(limit) * static_cast<double>(weight) * kRounded;
}

}  // namespace ooc
