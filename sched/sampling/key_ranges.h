// Sorted runs cut into ranges of keys that are worked on one after the other, or beside each other.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/sampling/key_fields.h"
#include "storage/edges/sorted_runs.h"

namespace ooc {

// Ranges have at least so many records a run: counts are exact to so many.
inline constexpr std::uint64_t kLeastOfRun = 1024;

struct KeyRange {
  std::uint64_t first = 0, last = 0;
};

// Of the keys in [first, last], in order: each range about `most` records or fewer, unless all of
// them are of one pair (KeyFields::same_pair()), which stay together. What is sure to hold none is
// left out.
std::vector<KeyRange> cut_ranges(const SortedRuns& runs, const KeyFields& fields,
                                 const KeyRange& all, std::uint64_t most);

// Where so many ranges of `most` records have memory: how many do, as large as these runs make
// them. At least 1.
std::int64_t ranges_at_once(const SortedRuns& runs, std::int64_t wanted, std::uint64_t most);

}  // namespace ooc
