#include "sched/workers/concurrency.h"

#include <bit>

namespace ooc {

// What waits are the roots of finished subtrees. Leaves before the first one under way, and those
// at the end of the begun ones, leave one a level each. Between them each root has a sibling with a
// leaf under way in it: not more a level than workers, nor in all than pairs of leaves.
std::int64_t most_partials(std::int64_t leaves, std::int64_t workers, std::int64_t window) {
  const auto levels = [](std::int64_t count) {
    return static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(count)));
  };
  const std::int64_t between = std::min(window / 2, workers * levels(window));
  return std::min(leaves, workers + between + 2 * levels(leaves)) + 1;
}

}  // namespace ooc
