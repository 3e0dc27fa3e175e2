// How far a run is, for who waits for it.
#pragma once

#include <cstdint>
#include <string>

#include "bin/cli/program.h"
#include "bin/cli/progress.h"
#include "engine/train/epoch_trainer.h"

namespace ooc {

// In epochs, or in batches, of which an epoch has several. One thread.
class RunProgress {
 public:
  // `config` outlives it.
  RunProgress(const cli::Command& command, const RunConfig& config);

  // `done` of an epoch's batches.
  void show_batch(std::int64_t epoch, std::int64_t done, std::int64_t batches);
  // Until the next batches are there, what share of making them is done.
  void show_preparing(double share);
  void show_epoch(const EpochRecord& record);
  void finish() { progress_.finish(); }

 private:
  void show(const std::string& note, std::int64_t done);

  const RunConfig& config_;
  cli::Progress progress_;
  std::int64_t batches_ = 0;  // of an epoch; 0: it is shown as a whole
  std::int64_t done_ = 0;     // of these, or epochs
  std::int64_t bytes_ = 0;    // moved so far
  std::string note_;          // of the last epoch
};

}  // namespace ooc
