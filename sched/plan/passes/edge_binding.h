// A propagation as a device sees it: its edge program, and which values its operands are.
#pragma once

#include <vector>

#include "kernels/spec/edge_program.h"
#include "sched/plan/program.h"

namespace ooc {

struct EdgeBinding {
  EdgeProgram program;
  // Values by the program's operand numbers.
  std::vector<ValueId> streamed, resident, accumulators, matrices;
  std::vector<ValueId> reductions;  // those of `matrices` that it adds to
};

// `batch_edges` and `slice_local_cols` are the plan's.
EdgeBinding bind_edges(const Program& program, const Propagation& propagation,
                       std::int64_t batch_edges, std::int64_t slice_local_cols);

}  // namespace ooc
