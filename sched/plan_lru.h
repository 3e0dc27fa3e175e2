// Residency as a cache that drops what was used longest ago leaves it (`lru`).
#pragma once

#include "sched/plan_residency.h"

namespace ooc {

Residency choose_by_lru(const PlanProblem& problem);

}  // namespace ooc
