// Levels of what stays in memory, by chance.
#pragma once

#include <random>

#include "sched/plan_residency.h"

namespace ooc::test {

// Such as may be: whole units, no less during an access than on either side of it. Memory isn't
// looked at.
Kept random_levels(const PlanProblem& problem, std::mt19937& random);

}  // namespace ooc::test
