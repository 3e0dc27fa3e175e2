// Residency by an interval linear program over the cyclic sequence of accesses (`lp`): for each
// tensor the share that stays from access to access, and during each access (linear_residency.h).
#pragma once

#include <optional>
#include <vector>

#include "sched/plan/cost/cost.h"
#include "sched/plan/liveness/problem.h"

namespace ooc {

// What no residency goes below for these passes, in fractions of tensors: bytes (nothing: not even
// the working sets fit), and seconds, given each pass's compute and that the memory below is
// reached at these rates. A tensor that isn't held as a whole needs the smallest slots there is.
std::optional<double> least_bytes(const PlanProblem& problem);
double least_seconds(const PlanProblem& problem, const std::vector<double>& compute_seconds,
                     const TransferRates& rates);
// What `lp` is likely to come to, before rounding, or would if it weighed bytes without zeros.
std::optional<double> likely_bytes(const PlanProblem& problem, Zeros zeros = Zeros::kMoved);

// Fewest bytes, in whole I/O chunks; memory that rounding leaves is filled up.
ResidentSet choose_by_lp(const PlanProblem& problem);

}  // namespace ooc
