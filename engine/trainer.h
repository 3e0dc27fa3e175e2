// Exact full-graph training: an epoch is one forward and backward over all vertices, a step of the
// optimiser, and an evaluation without dropout.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/checkpoint.h"
#include "engine/graph_inputs.h"
#include "engine/model_program.h"
#include "engine/run_config.h"

namespace ooc {

// A line of metrics.jsonl.
struct EpochRecord {
  std::int64_t epoch = 0;        // from 1
  double loss = 0;               // mean over the train split, before the step, dropout on
  double lr = 0;                 // of this epoch
  std::optional<Scores> scores;  // where evaluated: the run's metric
  double valid_loss = std::numeric_limits<double>::quiet_NaN();
  double train_seconds = 0;
  double eval_seconds = 0;
  std::int64_t bytes_read = 0;
  double compute_busy = 0;  // share of the workers' time spent in kernels
};

// One thread drives it. The dataset and the backend outlive it.
class Trainer {
 public:
  // DataError where the dataset has no features, labels or splits, or an empty train split.
  // UsageError where options don't fit it or each other.
  Trainer(Backend& backend, const Dataset& dataset, const RunConfig& config,
          DType real = DType::kF32, std::int64_t span_group = 0);

  DType real() const { return real_; }
  const RunConfig& config() const { return config_; }
  const ModelProgram& training() const { return training_; }
  const ModelProgram& evaluation() const { return evaluation_; }
  // What the plan says of an epoch with an evaluation: bytes read from the dataset.
  std::int64_t planned_bytes() const;
  // What is computed once, before the first epoch, and stays in memory: bytes by name.
  std::map<std::string, std::int64_t> precomputed_bytes() const;
  // Device memory that the plan takes, parameters included.
  std::int64_t planned_device_bytes() const;

  // Runs epoch state().epoch + 1. Nothing where `stop` was set: the epoch is dropped and state()
  // is what it was. RunError if the loss, in training or evaluation, isn't finite.
  std::optional<EpochRecord> run_epoch(const std::atomic<bool>* stop);

  const TrainingState& state() const { return state_; }
  Checkpoint checkpoint() const;
  // Continues from a checkpoint; `where` names it in errors. DataError if it is of another dataset
  // or model.
  void restore(Checkpoint checkpoint, const std::string& where);

 private:
  // What the first epoch needs; false: stopped.
  bool prepare(const std::atomic<bool>* stop);
  bool train(EpochRecord& record, const std::atomic<bool>* stop);
  bool evaluate(EpochRecord& record, const std::atomic<bool>* stop);
  void update_parameters(std::int64_t epoch, double lr);
  void keep_if_best(const EpochRecord& record, const std::vector<ParameterValues>& parameters);

  Backend& backend_;
  const Dataset& dataset_;
  RunConfig config_;
  DType real_;
  ModelProgram training_;
  ModelProgram evaluation_;
  GraphInputs inputs_;
  ParameterStore parameters_;
  TrainingState state_;
  bool prepared_ = false;
};

}  // namespace ooc
