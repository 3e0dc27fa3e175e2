// Exact full-graph training: an epoch is one forward and backward over all vertices, a step of the
// optimiser, and an evaluation without dropout.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/epoch_trainer.h"
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

class Trainer final : public EpochTrainer {
 public:
  // Throws as plan_training().
  Trainer(Backend& backend, BlockIo& io, const Dataset& dataset, const RunConfig& config,
          const TrainerOptions& options = {});

  const TrainingPlan& plan() const { return *plan_; }

  // Takes memory and space in the scratch directory and computes what is needed once a run.
  // run_epoch() does it where nobody did. False: stopped. IoError where there is no room.
  bool prepare(const std::atomic<bool>* stop);
  // Where steps evaluate, that takes the step after it, too.
  std::optional<EpochRecord> run_epoch(const std::atomic<bool>* stop) override;
  std::int64_t peak_device_bytes() const override;
  nlohmann::ordered_json plan_json() const override;
  nlohmann::ordered_json passes_json(const EpochRecord& record) const override;
  EpochForecast forecast() const override;

 private:
  Trainer(Backend& backend, BlockIo& io, const Dataset& dataset, const RunConfig& config,
          const TrainerOptions& options, std::shared_ptr<const TrainingPlan> plan);
  void on_restored() override { next_loss_.reset(); }
  bool compute_once();
  // They set state_.parameters to those after the epoch's step. False: stopped.
  bool train_and_evaluate(EpochRecord& record);
  bool evaluate_in_next_step(EpochRecord& record);
  // The loss of the epoch's step; its gradients are there. Nothing: stopped.
  std::optional<double> run_step(std::int64_t epoch);
  bool read_scores(EpochRecord& record);
  void update_parameters(std::int64_t epoch);
  RunResources resources() const;

  const Dataset& dataset_;
  TrainerOptions options_;
  std::shared_ptr<const TrainingPlan> plan_;
  GraphInputs inputs_;
  // Of the step after state_, if that was run already: its gradients are there, and parameters_
  // still those of state_.
  std::optional<double> next_loss_;
  std::unique_ptr<ProgramRun> run_;          // once prepared
  const std::atomic<bool>* stop_ = nullptr;  // of the epoch at hand
};

}  // namespace ooc
