// A pass made ready to run: its programs compiled by the backend, and which of the pass's uses and
// values their operands are.
#pragma once

#include <memory>
#include <vector>

#include "kernels/device/backend.h"
#include "sched/plan/passes/edge_binding.h"
#include "sched/plan/plan.h"
#include "sched/plan/program.h"

namespace ooc {

// An operand of the row-wise steps.
struct BoundOperand {
  RowProgram::Place place = RowProgram::Place::kTensor;
  ValueId value = -1;
  // Index into the pass's uses, of what has rows in memory: kTensor, kConverted, and scratch whose
  // rows are stored in part.
  std::size_t use = kNone;

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
};

struct BoundPass {
  const Pass* pass = nullptr;           // of the plan, which outlives it
  std::vector<BoundOperand> operands;   // of `rows`; reductions first, in the pass's order
  std::unique_ptr<RowWork> rows;        // null: no steps
  EdgeBinding edges;                    // of a propagate pass
  std::unique_ptr<EdgeWork> edge_work;  // likewise
  std::int64_t groups_per_block = 0;    // row groups of a whole block
  std::int64_t groups_per_step = 0;     // and of a whole step
  std::int64_t group_count = 0;         // of the graph
};

BoundPass bind_pass(Backend& backend, const Program& program, const Plan& plan, const Pass& pass,
                    const EdgeLayout& edges);

}  // namespace ooc
