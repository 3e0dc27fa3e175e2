// A propagation as a device sees it: its edge program, and which values its operands are.
#pragma once

#include <vector>

#include "kernels/device/backend.h"
#include "sched/plan/program.h"
#include "storage/format/tile.h"

namespace ooc {

struct EdgeBinding {
  EdgeProgram program;
  // Values by the program's operand numbers.
  std::vector<ValueId> streamed, resident, accumulators, matrices;
  std::vector<ValueId> reductions;  // those of `matrices` that it adds to
  EdgeData data;                    // what it reads of what edges carry
};

// Without kernels; `batch_edges` and `slice_local_cols` are the plan's.
EdgeBinding bind_edges(const Program& program, const Propagation& propagation,
                       std::int64_t batch_edges, std::int64_t slice_local_cols);

// Looks up the kernels of its steps.
void bind_kernels(const Backend& backend, const Propagation& propagation, EdgeBinding& binding);

}  // namespace ooc
