// A pass made ready to run: kernels looked up, operands numbered; and the views of one row group's
// operands, built once for all of its steps.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/device/backend.h"
#include "sched/plan/passes/edge_binding.h"
#include "sched/plan/plan.h"
#include "sched/plan/program.h"

namespace ooc {

struct BoundStep {
  RowKernel kernel = nullptr;
  const RowStep* step = nullptr;
};

// A vertex tensor that the steps find in memory, by a use of the pass.
struct BoundOperand {
  ValueId value = -1;
  std::size_t use = 0;  // index into the pass's uses
};

struct BoundPass {
  const Pass* pass = nullptr;  // of the plan, which outlives it
  std::vector<BoundStep> steps;
  std::vector<BoundOperand> operands;   // that the steps touch in place
  std::vector<BoundOperand> kept;       // likewise, of rows that are kept; else they're in scratch
  std::vector<BoundOperand> converted;  // whose rows they read from scratch, by Pass::scratch
  EdgeBinding edges;                    // of a propagate pass
  std::unique_ptr<EdgeKernel> edge_kernel;
  std::vector<ValueId> matrices;      // parameters and earlier passes' reductions that steps read
  std::int64_t groups_per_block = 0;  // row groups of a whole block
  std::int64_t groups_per_step = 0;   // and of a whole step
  std::int64_t group_count = 0;       // of the graph
};

BoundPass bind_pass(Backend& backend, const Program& program, const Pass& pass,
                    const EdgeLayout& edges);

// Where a slice begins in the scratch rows of a value: each is padded to 64 bytes.
std::int64_t scratch_slice_offset(const TensorLayout& group, DType dtype, std::int64_t slice);

// Used by one thread, for one row group.
class GroupOperands {
 public:
  GroupOperands(const Program& program, const BoundPass& pass);

  // `slices`: the pointers of the pass's operands in the step, operand after operand; the group has
  // rows [begin, begin + count) of it.
  void add_tensors(std::span<void* const> slices, std::int64_t begin, std::int64_t count);
  // After add_scratch(): those of `kept` likewise, which are no scratch in this group then.
  void add_kept(std::span<void* const> slices, std::int64_t begin, std::int64_t count);
  // The pass's scratch values, at their offsets from `data`.
  void add_scratch(std::byte* data, std::int64_t count);
  // A parameter or a reduction.
  void add_matrix(ValueId value, void* data);
  void call(const BoundStep& step, const StepSeed& state);

 private:
  void** pointers(std::int64_t count);
  void add(const std::vector<BoundOperand>& operands, std::span<void* const> slices,
           std::int64_t begin, std::int64_t count);

  const Program& program_;
  const BoundPass& pass_;
  std::vector<MatrixView> views_;  // by value
  std::vector<void*> pointers_;    // reserved in full: views point into it
};

}  // namespace ooc
