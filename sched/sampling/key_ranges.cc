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

std::uint64_t range_records(const SortedRuns& runs, std::uint64_t most) {
  return std::max({most, kLeastOfRun * runs.run_count(), std::uint64_t{1}});
}

}  // namespace

std::vector<KeyRange> cut_ranges(const SortedRuns& runs, const KeyFields& fields,
                                 const KeyRange& all, std::uint64_t most) {
  std::vector<KeyRange> ranges;
  cut(runs, fields, all, range_records(runs, most), ranges);
  return ranges;
}

std::int64_t ranges_at_once(const SortedRuns& runs, std::int64_t wanted, std::uint64_t most) {
  const std::uint64_t records = static_cast<std::uint64_t>(wanted) * most;
  return std::max(static_cast<std::int64_t>(records / range_records(runs, most)), std::int64_t{1});
}

}  // namespace ooc
