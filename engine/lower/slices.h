// Which propagations may run a slice of their tensors at a time.
#pragma once

#include "sched/plan/program.h"

namespace ooc {

// Propagation::slice_local_cols: where all of it can be done a slice of its vertex tensors at a
// time: every fold is as wide, and a column of a wide value depends on no other column of wide
// ones. 0 elsewhere.
std::int64_t slice_local_cols(const Program& program, const Propagation& work);

}  // namespace ooc
