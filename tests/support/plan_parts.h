// Memory for what edges read and make of a part.
#pragma once

#include "sched/plan/plan.h"

namespace ooc::test {

// Catch checks: each use has it for each part that is there at once, but for what pieces hold.
void check_parts(const Program& program, const Plan& plan, const EdgeLayout& edges, int index,
                 const Pass& pass);

}  // namespace ooc::test
