// A stage of a program over batches, made ready to run: its programs compiled by the backend, and
// which values their operands are.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "kernels/device/backend.h"
#include "sched/batch/batch_program.h"
#include "sched/plan/passes/edge_binding.h"

namespace ooc {

// A matrix that many tasks sum, each to a leaf of its own. A leaf is some row groups, or blocks,
// beside each other; how many depends on the rows alone, and so do the sum's bits.
struct BatchLeaves {
  static constexpr std::int64_t kMost = 64;

  std::int64_t groups = 0;  // of the batch
  std::int64_t a_leaf = 1;

  BatchLeaves(std::int64_t of_batch, bool sums)
      : groups(of_batch), a_leaf(sums ? ceil_div(of_batch, kMost) : 1) {}
  std::int64_t count() const { return ceil_div(groups, a_leaf); }
};

struct BatchStage {
  struct Operand {
    RowProgram::Place place = RowProgram::Place::kTensor;
    ValueId value = -1;
  };

  // Of its propagation.
  EdgeBinding edges;
  std::unique_ptr<EdgeWork> edge_work;  // null: it has none
  Direction direction = Direction::kIn;
  int edge_level = -1;  // of the destinations
  bool loops = false;
  std::int64_t slices = 1;
  std::int64_t edge_scratch_bytes = 0;

  // Of its steps.
  std::unique_ptr<RowWork> rows;  // null: it has none
  std::vector<Operand> operands;
  std::vector<ValueId> reductions;  // in the order of operands
  int level = -1;
  std::int64_t group_rows = 0;
  std::int64_t row_scratch_bytes = 0;

  std::vector<ValueId> extended;  // made here, with zeros beyond their own rows
};

// `in_memory`: of the lowered program, as Lifetimes says. Operands whose memory has too few rows,
// or rows of several levels at the edges, are a programmer's mistake.
BatchStage bind_batch_stage(Backend& backend, const BatchProgram& program, std::size_t stage,
                            const std::set<ValueId>& in_memory, std::int64_t group_rows);

}  // namespace ooc
