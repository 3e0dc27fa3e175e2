// Keys by which a vertex takes the in-edges with the smallest ones. A key is a function of who asks
// and of the source's name alone, so neither order nor threads matter, and a vertex may be offered
// its in-edges bit by bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/spec/random.h"

namespace ooc {

// Of the `parallel`-th edge from the source among those with the same ends. Uniform on 64 bits, and
// the same for all who share `stream`: layer-neighbour sampling, in which vertices of a batch take
// the same sources (LABOR: Balin and Catalyurek, NeurIPS 2023, with as many edges as are asked for
// instead of a threshold).
inline std::uint64_t source_key(std::uint64_t stream, std::uint32_t name, std::uint32_t parallel) {
  return mix64(stream ^ mix64(name | std::uint64_t{parallel} << 32));
}

// The same, so that an edge's chance goes by its weight (Efraimidis and Spirakis, IPL 97(5), 2006):
// -log(u) / weight, as bits that sort alike. Of a weight that isn't above 0: the largest key, which
// is never taken.
inline constexpr std::uint64_t kNeverTaken = ~std::uint64_t{0};
inline std::uint64_t weighted_key(std::uint64_t asker, std::uint32_t name, std::uint32_t parallel,
                                  float weight) {
  if (!(weight > 0)) return kNeverTaken;
  const std::uint64_t bits = source_key(asker, name, parallel);
  const double uniform = (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
  return std::bit_cast<std::uint64_t>(-std::log(uniform) / static_cast<double>(weight));
}

}  // namespace ooc
