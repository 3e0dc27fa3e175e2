#pragma once

#include <algorithm>
#include <cstdint>

#include "sched/plan.h"
#include "storage/types.h"

namespace ooc {

// The spans of a part, in the groups that its blocks take one after the other. The last group may
// be larger than the others (Pass::last_group): its panels are folded to the end one by one, so
// that the first ones' rows are on their way while the others are folded.
class SpanGroups {
 public:
  SpanGroups(const Pass& pass, std::int64_t spans)
      : group_(pass.span_group),
        spans_(spans),
        last_(ceil_div(std::max<std::int64_t>(0, spans - pass.last_group), group_)) {}

  std::int64_t count() const { return last_ + 1; }
  std::int64_t begin(std::int64_t index) const { return index * group_; }
  std::int64_t end(std::int64_t index) const {
    return index == last_ ? spans_ : (index + 1) * group_;
  }
  std::int64_t of(std::int64_t span) const { return std::min(span / group_, last_); }

 private:
  std::int64_t group_;
  std::int64_t spans_;
  std::int64_t last_;  // index
};

}  // namespace ooc
