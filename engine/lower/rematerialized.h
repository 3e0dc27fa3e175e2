// Which of the values that stages compute again a plan may keep in part instead.
#pragma once

#include <map>
#include <vector>

#include "sched/plan/program.h"

namespace ooc {

struct Recomputed {
  ValueId made = -1;   // the same in the stage that makes it first; -1: that one leaves it out
  bool cheap = false;  // computed again rather than read, wherever it's needed
};

// Of what a stage computes again (by value), what its other steps read; but not what is cheap all
// the way from what is kept, or follows cheaply from the rest.
std::vector<Rematerialized> find_rematerialized(const Program& program,
                                                const std::map<ValueId, Recomputed>& again);

}  // namespace ooc
