// A whole training run: epochs, metrics, checkpoints, early stopping, summary; and its resumption.
#pragma once

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/train/epoch_trainer.h"
#include "engine/train/run_directory.h"

namespace ooc {

enum class RunOutcome {
  kFinished,
  kInterrupted,     // `stop` was set; a checkpoint of all that was done is there
  kFinishedBefore,  // there was nothing left to do
};

struct RunResult {
  RunOutcome outcome = RunOutcome::kFinished;
  std::int64_t epochs = 0;         // whole epochs done
  nlohmann::ordered_json summary;  // as in summary.json; empty if interrupted
};

// Trains in `run` from where it stands: its newest checkpoint, or the beginning. `on_epoch` is
// called after each epoch's line is written. The trainer has the run's configuration. Errors of the
// trainer pass through; but for RunError a checkpoint of all that was done before is there, if it
// can be written.
RunResult run_training(RunDirectory& run, EpochTrainer& trainer, const std::atomic<bool>* stop,
                       const std::function<void(const EpochRecord&)>& on_epoch);

}  // namespace ooc
