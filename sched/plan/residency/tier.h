// One memory's part of a plan: what a strategy keeps in it, and where that lies.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sched/plan/liveness/problem.h"

namespace ooc {

// A plan as if there were only this memory, with storage below it: passes, ranges, places, and the
// bytes that passes read and write, but no predictions. Where passes work in the memory above,
// their uses and slots have no bytes here.
struct TierPlan {
  Plan plan;
  ResidentSet kept;               // by the plan's ranges
  std::vector<SlotCounts> slots;  // by pass
};
TierPlan plan_tier(PlanProblem& problem);
// Of another device for the same passes, after `first`, which was made for the problem `its`: as
// much of what it has as the first one keeps of its own, as far as places are found. Nothing: the
// least working set doesn't fit.
std::optional<TierPlan> follow_tier(PlanProblem& problem, const TierPlan& first,
                                    const PlanProblem& its);

// What passes then read and write, or get from other devices.
void count_bytes(const PlanProblem& problem, const ResidentSet& residency, Plan& plan);

// By pass: how many spans a task takes at once (Pass::span_group) where slots allow it.
std::vector<std::int64_t> widest_windows(const PlanProblem& problem);

// Read and written in an epoch.
std::int64_t moved_bytes(const TierPlan& tier);

}  // namespace ooc
