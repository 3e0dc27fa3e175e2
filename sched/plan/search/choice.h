// The plan of the memory in which passes work: splits, sizes of slots, and what stays.
#pragma once

#include <optional>
#include <vector>

#include "sched/plan/cost/cost.h"
#include "sched/plan/residency/tier.h"

namespace ooc {

struct WorkingTier {
  std::vector<PassSplit> splits;
  TierPlan tier;
};

// Fewest bytes, as if storage were below it; but for `lp`, and without a device, smaller
// destination ranges, two at once, or wider slots, where that takes less time for a few bytes more,
// and splits that move more where that takes less time. Otherwise slots are as large as overlap
// asks for, or, where that takes hardly more time, smaller, which leaves more memory for what
// stays. Nothing: the least working set doesn't fit.
std::optional<WorkingTier> choose_working_tier(const PassBuilder& builder, const EdgeTable& edges);

// Of what streams through the pass's slots as planned.
// `index`: the pass, over all sections.
SlotDepth slot_depth(const Plan& plan, const EdgeLayout& edges, std::int64_t workers, int index,
                     const Pass& pass);

}  // namespace ooc
