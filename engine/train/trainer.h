// Exact full-graph training: an epoch is one forward and backward over all vertices, a step of the
// optimiser, and an evaluation without dropout.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/checkpoint.h"
#include "engine/train/graph_inputs.h"
#include "engine/train/program_run.h"
#include "engine/train/run_config.h"
#include "engine/train/training_plan.h"

namespace ooc {

// The plan of a training; nothing is allocated or read for it but what checks of labels and splits
// read. `budget`: its workers are those of the thread arena that calls. DataError where the dataset
// has no features, labels or splits, or an empty train split. UsageError where options don't fit it
// or each other. BudgetError where it doesn't fit the budget. Interrupted while it plans, once the
// stop in budget.plan is set.
std::shared_ptr<const TrainingPlan> plan_training(const Dataset& dataset, const RunConfig& config,
                                                  RunBudget budget, DType real = DType::kF32);

// A line of metrics.jsonl, and what its passes did.
struct EpochRecord {
  std::int64_t epoch = 0;      // from 1
  double loss = 0;             // mean over the train split, before the step, dropout on
  double lr = 0;               // of this epoch
  std::vector<Scores> scores;  // of the run's metrics; empty where not evaluated
  double valid_loss = std::numeric_limits<double>::quiet_NaN();
  double train_seconds = 0;
  double eval_seconds = 0;                      // of what a step doesn't do already
  RunCounters counters;                         // of all passes, and of what metrics read
  double compute_busy = 0;                      // share of the workers' time spent in kernels
  std::vector<double> devices_busy = {};        // likewise, of each of several devices
  std::vector<Topology::LinkBytes> links = {};  // where a topology is known; of passes alone
  std::int64_t peak_device_bytes = 0;  // so far, of devices with memory of their own the most
  struct SectionRun {
    int section = 0;
    std::vector<PassReport> passes;
  };
  std::vector<SectionRun> sections;  // of the plan, in the order in which they ran
};

struct TrainerOptions {
  RunBudget budget = {};      // its workers are those of the thread arena that calls
  std::string scratch = ".";  // directory for what doesn't fit memory
  DType real = DType::kF32;
  std::vector<Backend*> others = {};  // beside the first device
  Trace* trace = nullptr;             // gets what devices do
  bool warns_of_data = true;          // false for those after the first of several on one dataset
  // plan_training() of the same dataset, budget and configuration, but for the seed. Null: the
  // trainer makes it.
  std::shared_ptr<const TrainingPlan> plan = {};
};

// One thread drives it. The dataset, the backend and the BlockIo outlive it.
class Trainer {
 public:
  // Throws as plan_training().
  Trainer(Backend& backend, BlockIo& io, const Dataset& dataset, const RunConfig& config,
          const TrainerOptions& options = {});

  DType real() const { return options_.real; }
  const RunConfig& config() const { return config_; }
  const TrainingPlan& plan() const { return *plan_; }

  // Takes memory and space in the scratch directory and computes what is needed once a run.
  // run_epoch() does it where nobody did. False: stopped. IoError where there is no room.
  bool prepare(const std::atomic<bool>* stop);
  // Runs epoch state().epoch + 1; where steps evaluate, that takes the step after it, too.
  // Nothing where `stop` was set: the epoch is dropped and state() is what it was. RunError if the
  // loss, in training or evaluation, isn't finite.
  std::optional<EpochRecord> run_epoch(const std::atomic<bool>* stop);

  const TrainingState& state() const { return state_; }
  // How the dataset is read: BlockIo::name().
  std::string_view io_name() const { return io_.name(); }
  std::int64_t peak_device_bytes() const;  // of the device that took the most
  Checkpoint checkpoint() const;
  // Continues from a checkpoint; `where` names it in errors. DataError if it is of another dataset
  // or model.
  void restore(Checkpoint checkpoint, const std::string& where);

 private:
  bool compute_once();
  // They set state_.parameters to those after the epoch's step. False: stopped.
  bool train_and_evaluate(EpochRecord& record);
  bool evaluate_in_next_step(EpochRecord& record);
  // The loss of the epoch's step; its gradients are there. Nothing: stopped.
  std::optional<double> run_step(std::int64_t epoch);
  bool read_scores(EpochRecord& record);
  void update_parameters(std::int64_t epoch);
  void keep_if_best(const EpochRecord& record);
  RunResources resources() const;

  Backend& backend_;
  BlockIo& io_;
  const Dataset& dataset_;
  RunConfig config_;
  TrainerOptions options_;
  std::shared_ptr<const TrainingPlan> plan_;
  GraphInputs inputs_;
  ParameterStore parameters_;
  TrainingState state_;
  // Of the step after state_, if that was run already: its gradients are there, and parameters_
  // still those of state_.
  std::optional<double> next_loss_;
  std::unique_ptr<ProgramRun> run_;          // once prepared
  const std::atomic<bool>* stop_ = nullptr;  // of the epoch at hand
};

}  // namespace ooc
