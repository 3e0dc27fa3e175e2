// Everything needed to run a training again: config.toml of a run directory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/machine/dataset_io.h"
#include "engine/machine/devices.h"
#include "engine/model/parts/model.h"
#include "engine/sampling/fanouts.h"
#include "kernels/device/backend.h"
#include "sched/plan/plan.h"
#include "storage/format/chunk_file.h"

namespace ooc {

// The learning rate over a run's epochs, from --lr.
enum class LrSchedule {
  kConstant,
  kCosine,  // lr (1 + cos(pi (epoch - 1) / (epochs - 1))) / 2: lr in the first epoch, 0 in the last
  kStep,    // a tenth once half of the epochs are done, a hundredth once three quarters are
};

struct RunConfig {
  std::string dataset;  // path, as given
  ModelOptions model;
  std::int64_t epochs = 200;
  double lr = 0.01;
  LrSchedule lr_schedule = LrSchedule::kConstant;
  OptimizerKind optimizer = OptimizerKind::kAdam;
  double momentum = 0;  // of SGD
  double weight_decay = 0;
  std::vector<Metric> metrics{Metric::kAccuracy};  // the first one picks the best epoch
  std::int64_t seed = 0;                           // of the first run
  std::int64_t runs =
      1;  // more: one a seed, in directories of their own (engine/train/seed_runs.h)
  std::int64_t patience = 0;  // evaluations without a better valid metric; 0: no early stopping
  std::int64_t eval_every = 1;
  std::int64_t checkpoint_every = 10;      // epochs
  std::int64_t checkpoint_batches = 1000;  // of an epoch; where it samples
  SamplingConfig sampling;
  VerifyPolicy verify = VerifyPolicy::kFirst;
  std::string rewrites;  // engine/rewrite/rewrites.h: which are not made
  // How it runs, which changes no result: on what; what stays in memory; where the rest goes,
  // empty: in the run directory; how the dataset is read.
  MachineShare on;
  Strategy cache_policy = Strategy::kDp;
  std::string scratch;
  DatasetIo io = DatasetIo::kAuto;

  bool operator==(const RunConfig&) const = default;
};

// UsageError where the task, loss, metrics or class weights don't fit the labels, of `where`, or
// options each other.
void check_config(const RunConfig& config, LabelKind labels, std::int64_t classes,
                  const std::string& where);

// Whether there is an evaluation after the epoch.
inline bool evaluates(const RunConfig& config, std::int64_t epoch) {
  return epoch % config.eval_every == 0 || epoch == config.epochs;
}

// Of an epoch, from 1.
double learning_rate(const RunConfig& config, std::int64_t epoch);

// TOML whose keys are ooc-train's options, so it can be given to --config too. The program's text
// is not part of it (engine/train/run_directory.h, engine/train/checkpoint.h).
std::string to_toml(const RunConfig& config);
// What files of older versions lack has its default. DataError, naming `where`: not TOML, or a key
// missing, unknown or of a wrong value.
RunConfig run_config_from_toml(const std::string& text, const std::string& where);

}  // namespace ooc
