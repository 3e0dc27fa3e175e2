// The programs of a training and their plans: everything that a graph's counts and a budget decide.
// No dataset is needed.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/machine/run_budget.h"
#include "engine/model/precompute.h"
#include "engine/model/program.h"
#include "engine/train/program_run.h"
#include "engine/train/run_config.h"

namespace ooc {

// The first section of an epoch's plan.
inline constexpr int kTraining = 0;

// What of the two memories is taken beside what a plan gives out.
struct Reserved {
  std::int64_t host_bytes = 0;
  std::int64_t device_bytes = 0;  // of a device with memory of its own
};

class TrainingPlan {
 public:
  // BudgetError as make_plan's.
  TrainingPlan(const RunConfig& config, const GraphFacts& facts, GraphCounts counts, DType real,
               const RunBudget& budget);

  // The programs of an epoch, in the order of the plan's sections: the training, and the
  // evaluation after it; or, where that is better, one that evaluates the parameters with which
  // the training step begins, and does once what both do.
  std::vector<const ModelProgram*> programs() const;
  const ModelProgram& training() const { return training_; }
  bool evaluates_in_step() const { return !evaluation_; }
  // Where the evaluation's results are.
  int evaluation_section() const { return evaluation_ ? kTraining + 1 : kTraining; }
  const ModelProgram& evaluation() const { return evaluation_ ? *evaluation_ : training_; }
  const Precompute& precompute() const { return precompute_; }
  const Plan& epoch_plan() const { return epoch_; }
  const Plan& precompute_plan() const {
    return precompute_plan_;
  }  // without passes if there is nothing
  // Of the arena that both plans share.
  std::int64_t arena_bytes() const;

  // Of an epoch with an evaluation, its metric included: from and to storage.
  std::int64_t bytes_read() const { return epoch_.bytes_read + metric_.read; }
  std::int64_t bytes_written() const { return epoch_.bytes_written; }
  // Over the link to a device with memory of its own.
  std::int64_t bytes_to_device() const { return epoch_.bytes_to_device; }
  std::int64_t bytes_from_device() const { return epoch_.bytes_from_device + metric_.from_device; }
  // Of kernels on a GPU, in an epoch with an evaluation; 0 elsewhere.
  std::int64_t launches() const;
  std::int64_t host_bytes() const { return budget_.host_bytes; }
  std::int64_t workers() const { return budget_.plan.workers; }  // of each device
  std::int64_t devices() const { return budget_.plan.devices; }
  // Of the budget: what the process holds when it plans, and what it takes beside the plan.
  std::int64_t reserved_bytes() const { return reserved_.host_bytes; }

  nlohmann::ordered_json json() const;
  std::string text() const;

 private:
  void choose_epoch(const RunConfig& config, const GraphFacts& facts, const GraphCounts& counts);
  void plan_precompute(const GraphCounts& counts);
  std::vector<const Program*> epoch_programs() const;
  void count_metric_bytes(const RunConfig& config, const GraphCounts& counts);

  ModelProgram training_;
  std::optional<ModelProgram> evaluation_;
  Precompute precompute_;
  RunBudget budget_;
  Reserved reserved_;
  OutputTraffic metric_;
  Plan precompute_plan_;
  Plan epoch_;
};

// What one who reads rows of a file (engine/metrics/block_rows.h), of an output of the program, and
// all that metrics need take: nothing where they need no logits.
std::int64_t stored_reserve(const TensorLayout& layout, DType dtype);
std::int64_t output_reserve(const ModelProgram& program, TensorId tensor,
                            const GraphCounts& counts);
std::int64_t metric_reserve(const ModelProgram& program, std::span<const Metric> metrics, Task task,
                            const GraphCounts& counts);

// What a ParameterStore takes: parameters, and for a training their moments.
std::int64_t parameter_bytes(const ModelProgram& program, Mode mode);

// Of a device's memory: the same, summed gradients, each in a buffer, and a bit a vertex.
std::int64_t device_reserve(const ModelProgram& program, Mode mode, const GraphCounts& counts);

// try_plan() and make_plan() with what the budget leaves where so much of it is taken.
std::optional<Plan> try_plan_in_budget(const std::vector<const Program*>& programs,
                                       const GraphCounts& counts, const RunBudget& budget,
                                       const Reserved& reserved);
Plan plan_in_budget(const std::vector<const Program*>& programs, const GraphCounts& counts,
                    const RunBudget& budget, const Reserved& reserved);

// What a process takes beside what it holds already and what a plan gives out: buffers of BLAS,
// stacks, tables of the executor; and `parameter_bytes`, of parameters in all their copies.
std::int64_t process_reserve(std::int64_t workers, std::int64_t parameter_bytes,
                             const GraphCounts& counts);

}  // namespace ooc
