#include "sched/workers/concurrency.h"

#include <bit>

namespace ooc {

namespace {

std::int64_t levels(std::int64_t count) {
  return static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(count)));
}

}  // namespace

// What waits are the roots of finished subtrees. Leaves before the first one under way, and those
// at the end of the begun ones, leave one a level each. Between them each root has a sibling with a
// leaf under way in it: not more a level than workers, nor in all than pairs of leaves.
std::int64_t most_partials(std::int64_t leaves, std::int64_t workers, std::int64_t window) {
  const std::int64_t between = std::min(window / 2, workers * levels(window));
  return std::min(leaves, workers + between + 2 * levels(leaves)) + 1;
}

// One a level, one that is being added, and the result of the round before.
std::int64_t partials_in_order(std::int64_t leaves) { return levels(leaves) + 2; }

}  // namespace ooc
