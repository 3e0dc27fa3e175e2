// What a model of a sampled training is worth by all of the graph: an evaluation without samples,
// as inference has it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/machine/run_budget.h"
#include "engine/metrics/metrics.h"
#include "engine/model/program.h"
#include "engine/train/parameters.h"
#include "engine/train/run_config.h"
#include "kernels/device/backend.h"
#include "sched/plan/plan.h"
#include "sched/run/executor.h"
#include "storage/dataset/dataset.h"
#include "storage/io/block_file.h"

namespace ooc {

class ExactEvaluation {
 public:
  // `kept_bytes`: of the budget, what stays taken while it runs. BudgetError where the rest doesn't
  // do. Nothing is allocated yet.
  ExactEvaluation(const Dataset& dataset, const RunConfig& config, DType real, RunBudget budget,
                  std::int64_t kept_bytes);

  struct Result {
    std::vector<Scores> scores;  // of the run's metrics
    double train_loss = 0, valid_loss = 0;
    RunCounters counters;
  };
  // With these parameters. Memory is taken meanwhile only. Nothing: `stop` was set. Errors of
  // storage pass through.
  std::optional<Result> run(Backend& backend, BlockIo& io, const std::string& scratch,
                            const std::vector<ParameterValues>& parameters,
                            const std::atomic<bool>* stop) const;

  const Plan& plan() const { return plan_; }

 private:
  const Dataset& dataset_;
  const RunConfig& config_;
  ModelProgram program_;
  Plan plan_;
};

}  // namespace ooc
