// What a run's epochs are trained by: the state between them, and what each did.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/machine/topology.h"
#include "engine/model/program.h"
#include "engine/train/checkpoint.h"
#include "engine/train/parameters.h"
#include "engine/train/run_config.h"
#include "sched/run/executor.h"

namespace ooc {

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

// What a plan says of an epoch.
struct EpochForecast {
  std::int64_t bytes = 0;  // from and to storage
  double seconds = 0;
  double bound_seconds = 0;  // no plan takes less
};

// What is trained on.
struct TrainedData {
  const Manifest& manifest;  // of the graph
  std::string path;
  std::string checksum;
  std::vector<double> class_weights;  // empty: all count alike
};
TrainedData trained_data(const Dataset& dataset, const RunConfig& config);

// One thread drives it. What it trains on, the backend and the BlockIo outlive it.
class EpochTrainer {
 public:
  virtual ~EpochTrainer() = default;
  EpochTrainer(const EpochTrainer&) = delete;
  EpochTrainer& operator=(const EpochTrainer&) = delete;

  DType real() const { return parameters_.real(); }
  const RunConfig& config() const { return config_; }
  const TrainingState& state() const { return state_; }
  // How the dataset is read: BlockIo::name().
  std::string_view io_name() const { return io_.name(); }

  // Runs epoch state().epoch + 1, or what of it isn't done. Nothing where `stop` was set: state()
  // is what it was, or further on in the epoch. RunError if the loss, in training or evaluation,
  // isn't finite.
  virtual std::optional<EpochRecord> run_epoch(const std::atomic<bool>* stop) = 0;
  // Whether the best model is scored anew in the end: by all of the graph, not by samples.
  virtual bool scores_anew() const { return false; }
  // Of the best model, of the run's metrics. Nothing: `stop` was set.
  virtual std::optional<std::vector<Scores>> final_scores(const std::atomic<bool>*) {
    return state_.best.scores;
  }
  virtual std::int64_t peak_device_bytes() const = 0;  // of the device that took the most
  // plan.json; what passes of an epoch did, for its line of metrics.jsonl; and what was predicted.
  virtual nlohmann::ordered_json plan_json() const = 0;
  virtual nlohmann::ordered_json passes_json(const EpochRecord& record) const = 0;
  virtual EpochForecast forecast() const = 0;

  Checkpoint checkpoint() const;
  // Called whenever state() is further on inside an epoch by `checkpoint_batches`.
  void save_inside_epochs(std::function<void()> save) { save_ = std::move(save); }
  // Continues from a checkpoint; `where` names it in errors. DataError if it is of another dataset
  // or model.
  void restore(Checkpoint checkpoint, const std::string& where);

 protected:
  // With fresh parameters.
  EpochTrainer(Backend& backend, BlockIo& io, TrainedData data, const RunConfig& config, DType real,
               const std::vector<ModelParameter>& parameters);

  // Of the epoch's rate.
  OptimizerOptions optimizer(std::int64_t epoch) const;
  // The step may have been the one that broke the model. RunError.
  static void check_finite(double loss, const char* what, std::int64_t epoch);
  // After an evaluation of state().parameters.
  void keep_if_best(const EpochRecord& record);

  Backend& backend_;
  BlockIo& io_;
  TrainedData data_;
  RunConfig config_;
  ParameterStore parameters_;
  TrainingState state_;
  std::function<void()> save_;

 private:
  virtual std::int64_t epoch_batches() const { return 0; }  // that state() counts
  virtual void on_restored() {}  // what was run ahead is of another state
};

// DataError where the dataset has no features, labels or splits, or an empty train split.
// UsageError where options don't fit it or each other.
void check_trainable(const Dataset& dataset, const RunConfig& config);

}  // namespace ooc
