// Residency as a cache leaves it that drops what was used longest ago (`lru`). It may not quite
// fit: trim() it.
#pragma once

#include "sched/plan/liveness/problem.h"

namespace ooc {

ResidentSet choose_by_lru(const PlanProblem& problem);

}  // namespace ooc
