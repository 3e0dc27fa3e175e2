// Row-wise work that writes a tensor's rows where it read another's: such rows are in memory once.
#pragma once

#include <vector>

#include "sched/plan/liveness/access.h"

namespace ooc {

// In this pass the rows of `from` are needed for the last time, and each row of `to` is made after
// the same row of `from` was read. Both have the same I/O chunks.
struct InPlaceAlias {
  int pass = 0;
  int from = -1, to = -1;  // tensors
};

// In the order of passes; a tensor takes the place of one at most, and leaves it to one at most.
// The levels of both are multiples of the same quantum from then on.
std::vector<InPlaceAlias> find_in_place_aliases(const PassBuilder& builder, const Draft& draft,
                                                std::vector<Timeline>& timelines);

// Blocks of both tensors, the first ones, that lie in the same place.
std::int64_t shared_blocks(const InPlaceAlias& alias, const ResidentSet& residency);

// A range, or several that follow each other in one place: of the same blocks, each from the pass
// on that is the last one of the resident range before it.
struct Bundle {
  std::vector<ResidentRange> ranges;
  int first_pass() const { return ranges.front().first_pass; }
  int last_pass() const { return ranges.back().last_pass; }
  std::int64_t bytes() const { return ranges.front().memory.bytes; }
};
std::vector<Bundle> make_bundles(const std::vector<InPlaceAlias>& aliases,
                                 const std::vector<ResidentRange>& ranges);

}  // namespace ooc
