// Ranges that lie where others do.
#pragma once

#include <set>

#include "sched/plan/plan.h"

namespace ooc::test {

// Of the arena's ranges those that begin with this pass where another one lies until it is over.
// Catch checks: of the same rows, of which each is made after the last step that reads the old
// one.
std::set<const ResidentRange*> in_place_of_others(const Plan& plan, int index, const Pass& pass);

}  // namespace ooc::test
