#pragma once

#include <algorithm>
#include <cstdint>

#include "sched/plan.h"
#include "storage/types.h"

namespace ooc {

// The spans of a part, in the groups that its blocks take one after the other. The last group may
// be larger than the others (Pass::last_group): its panels are folded to the end one by one, so
// that the first ones' rows are on their way while the others are folded. Likewise the first two
// groups are folded panel by panel: the first panels keep the workers busy while the rows of the
// part before make room for the others.
class SpanGroups {
 public:
  SpanGroups(const Pass& pass, std::int64_t spans)
      : group_(pass.span_group),
        spans_(spans),
        last_(ceil_div(std::max<std::int64_t>(0, spans - pass.last_group), group_)),
        together_(follows(pass) && pass.last_group > group_ && last_ > 1 ? 2 : 1) {}

  std::int64_t count() const { return last_ + 1; }
  std::int64_t begin(std::int64_t index) const { return index * group_; }
  std::int64_t end(std::int64_t index) const {
    return index == last_ ? spans_ : (index + 1) * group_;
  }
  std::int64_t of(std::int64_t span) const { return std::min(span / group_, last_); }

  // Calls visit(group, panel) for each group and the panels [first, end), in the order in which
  // they are folded, while it returns true; returns whether it did to the end.
  template <class Visit>
  bool for_each_panel(std::int64_t first, std::int64_t end, Visit&& visit) const {
    for (std::int64_t group = 0; group < count();) {
      const std::int64_t next = group + (group == 0 ? together_ : 1);
      for (std::int64_t panel = first; panel < end; ++panel) {
        for (std::int64_t at = group; at < next; ++at) {
          if (!visit(at, panel)) return false;
        }
      }
      group = next;
    }
    return true;
  }

 private:
  // Whether parts, or groups of slices, take the memory of those before.
  static bool follows(const Pass& pass) {
    const bool sliced =
        pass.slices_at_once > 0 && pass.slices_at_once * kSliceWidth < pass.slice_local_cols;
    return pass.parts_at_once == 1 && (pass.parts > 1 || sliced);
  }

  std::int64_t group_;
  std::int64_t spans_;
  std::int64_t last_;      // index
  std::int64_t together_;  // the first ones that are folded panel by panel
};

}  // namespace ooc
