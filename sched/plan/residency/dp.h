// Residency of whole tensors by ROC's Algorithm 1 (`dp`): COST(finished operators, cached tensors).
// Here the operators are the passes, in their order, and an epoch must end with what it began with
// in memory.
#pragma once

#include <string>

#include "sched/plan/liveness/problem.h"

namespace ooc {

// Exact up to ROC's own sizes, 16 operators and 4,096 sets of tensors each; beyond, the best that
// is found, and `remark` says so.
ResidentSet choose_by_dp(const PlanProblem& problem, std::string& remark);

}  // namespace ooc
