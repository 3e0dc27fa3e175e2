#include "sched/sampling/key_ranges.h"

#include <algorithm>

namespace ooc {
namespace {

void cut(const SortedRuns& runs, const KeyFields& fields, const KeyRange& range, std::uint64_t most,
         std::vector<KeyRange>& ranges) {
  const std::uint64_t size = runs.size_bound(range.first, range.last);
  if (size == 0) return;
  if (size <= most || fields.same_pair(range.first, range.last)) return ranges.push_back(range);
  std::uint64_t middle = fields.last_of_pair(range.first + (range.last - range.first) / 2);
  if (middle >= range.last) middle = fields.first_of_pair(range.last) - 1;
  cut(runs, fields, {range.first, middle}, most, ranges);
  cut(runs, fields, {middle + 1, range.last}, most, ranges);
}

}  // namespace

std::vector<KeyRange> cut_ranges(const SortedRuns& runs, const KeyFields& fields,
                                 const KeyRange& all, std::uint64_t most) {
  std::vector<KeyRange> ranges;
  cut(runs, fields, all, std::max(most, kLeastOfRun * runs.run_count()), ranges);
  return ranges;
}

}  // namespace ooc
