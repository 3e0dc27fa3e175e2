// What must hold of every plan: checked from the plan alone, I/O chunk by I/O chunk, by code that
// shares nothing with the planner.
#pragma once

#include <vector>

#include "sched/plan/plan.h"
#include "tests/support/plan_programs.h"

namespace ooc::test {

// By pass, of the second epoch.
struct Counted {
  std::vector<std::int64_t> read, written;           // from and to storage
  std::vector<std::int64_t> to_device, from_device;  // over the link; 0 without a HostTier
};
// What an executor that follows the plan moves.
Counted count_bytes(const Plan& plan, const GraphCounts& graph);

// Catch checks: regions that are there together don't overlap and lie in their arena; ranges of a
// tensor are disjoint and on I/O chunks; what is read was stored or is there; staging slots take
// what crosses the link; the budgets hold.
void check_plan(const std::vector<const Program*>& programs, const Plan& plan,
                const GraphCounts& graph, const PlanOptions& options);

}  // namespace ooc::test
