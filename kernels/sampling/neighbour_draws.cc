#include "kernels/sampling/neighbour_draws.h"

#include <algorithm>

#include "storage/base/errors.h"

namespace ooc {
namespace {

// Below `bound`, of draw `index`: the bias is below bound / 2^64.
std::uint32_t below(std::uint64_t asker, std::uint32_t index, std::uint32_t bound) {
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t bits = mix64(asker + index);
  return static_cast<std::uint32_t>(static_cast<Wide>(bits) * bound >> 64);
}

}  // namespace

void draw_distinct(std::uint64_t asker, std::uint32_t degree, std::span<std::uint32_t> ordinals) {
  const auto count = static_cast<std::uint32_t>(ordinals.size());
  OOC_CHECK(count <= degree);
  auto end = ordinals.begin();
  for (std::uint32_t i = 0; i < count; ++i, ++end) {
    const std::uint32_t last = degree - count + i;
    const std::uint32_t drawn = below(asker, i, last + 1);
    const auto at = std::lower_bound(ordinals.begin(), end, drawn);
    if (at != end && *at == drawn) {
      *end = last;  // larger than all that are there
      continue;
    }
    std::copy_backward(at, end, end + 1);
    *at = drawn;
  }
}

void draw_repeated(std::uint64_t asker, std::uint32_t degree, std::span<std::uint32_t> ordinals) {
  for (std::uint32_t i = 0; i < ordinals.size(); ++i) ordinals[i] = below(asker, i, degree);
  std::sort(ordinals.begin(), ordinals.end());
}

}  // namespace ooc
