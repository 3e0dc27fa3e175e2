// Runs a program over batches that lie in memory, stage after stage.
//
// Row-wise work and edges are handed out to the workers of the caller's TBB arena. Bits don't
// depend on how many there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/device/backend.h"
#include "sched/batch/batch_arena.h"
#include "sched/batch/batch_graph.h"
#include "sched/batch/batch_program.h"
#include "sched/batch/batch_stage.h"
#include "sched/plan/program.h"

namespace ooc {

// By the name of an input: where its rows lie, in slices (storage/format/tensor_layout.h), as many
// as its level has or more, of the value's type.
using BatchInputs = std::map<std::string, SlicedRows>;

// One run at a time; the rest by any thread between runs.
class BatchExecutor {
 public:
  // Compiles the program. `backend` outlives it; it runs inline and its memory is the host's.
  BatchExecutor(Backend& backend, const Program& program);
  BatchExecutor(const BatchExecutor&) = delete;
  BatchExecutor& operator=(const BatchExecutor&) = delete;

  // Where a parameter lies, contiguous; until another place is bound.
  void bind_parameter(ValueId id, void* data);

  // Of memory, for a batch of so many rows; grows with the rows of any level. Beside it, for each
  // worker of the TBB arena, its scratch; and, whatever the batch, the reductions.
  std::int64_t arena_bytes(std::span<const std::int64_t> level_rows) const;
  std::int64_t scratch_bytes() const { return scratch_bytes_; }
  std::int64_t reduction_bytes() const { return reduction_bytes_; }
  // Takes the memory of such batches at once; run() takes more where a batch has more. BudgetError
  // where the machine has none.
  void reserve(std::span<const std::int64_t> level_rows);
  // Gives it back, until the next run: outputs are gone.
  void release();

  // `graph` has the hops that the program's levels ask for, and all inputs have rows: else it is a
  // programmer's mistake. The inputs stay as they are until outputs have been read. `counts`: of
  // labels of the batch; rows are counted here.
  void run(const BatchGraph& graph, const BatchInputs& inputs, StepSeed seed,
           const StepCounts& counts = {});

  // Of the last run, until the next one. A reduction: its rows beside each other. An output: the
  // rows of its level.
  const std::byte* reduction(ValueId id) const;
  MatrixView output(ValueId id) const;

  // What the last run took, by stage, in seconds.
  struct Seconds {
    double edges = 0, rows = 0;
  };
  const std::vector<Seconds>& seconds() const { return seconds_; }

 private:
  struct Sum {
    ValueId id = -1;
    std::byte* leaves = nullptr;  // beside each other
  };

  const Value& value(ValueId id) const;
  std::int64_t sum_bytes(ValueId id) const;
  std::int64_t partial_bytes(const std::vector<ValueId>& sums, std::int64_t groups) const;
  std::int64_t partial_bytes(std::span<const std::int64_t> level_rows) const;
  void grow(std::int64_t arena_bytes);
  void place(const BatchInputs& inputs);
  void zero_extended(const BatchStage& stage);
  void run_edges(const BatchStage& stage, const BatchGraph& graph, StepSeed seed);
  EdgeWindow window_of(const BatchStage& stage, const BatchGraph::Window& edges,
                       const std::vector<Sum>& sums, const BatchLeaves& leaves) const;
  void run_rows(const BatchStage& stage, StepSeed seed, StepCounts counts);
  std::vector<Sum> place_sums(const std::vector<ValueId>& ids, const BatchLeaves& leaves);
  void add_up(const std::vector<Sum>& sums, const BatchLeaves& leaves);
  std::byte* scratch(std::int64_t lane) const;

  Backend& backend_;
  BatchProgram program_;
  BatchArena arena_;
  std::vector<BatchStage> stages_;
  std::vector<void*> matrices_;  // by value: parameters and reductions
  std::int64_t scratch_bytes_ = 0, reduction_bytes_ = 0;
  std::unique_ptr<DeviceBuffer> reductions_, memory_, scratch_;
  std::int64_t lanes_ = 0;
  std::vector<std::int64_t> level_rows_;  // of the last run
  std::vector<SlicedRows> rows_;          // by value: row 0
  std::byte* partials_ = nullptr;
  std::vector<Seconds> seconds_;
};

}  // namespace ooc
