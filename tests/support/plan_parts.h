// Memory for what edges read and make of a destination range.
#pragma once

#include "sched/plan/plan.h"

namespace ooc::test {

// Catch checks: each use has it for each destination range that is there at once, but for what
// ranges hold.
void check_dst_ranges(const Program& program, const Plan& plan, const EdgeLayout& edges, int index,
                      const Pass& pass);

}  // namespace ooc::test
