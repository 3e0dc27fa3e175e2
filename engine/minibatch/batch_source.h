// Where the batches of a training come from: sampled when they are needed
// (engine/minibatch/sampled_batches.h), or from a file (engine/minibatch/stored_batches.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/batches/batch_loader.h"
#include "engine/batches/loaded_batch.h"
#include "engine/train/epoch_trainer.h"

namespace ooc {

// What batches took since the last time.
struct LoadedWork {
  LoadedSeconds seconds;
  LoadedBytes bytes;
  std::vector<SuperbatchFigures> superbatches = {};  // of sampled ones
};

// One thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  virtual std::int64_t batches() const = 0;  // of an epoch of training
  virtual bool judges_valid() const = 0;     // whether evaluations have validation vertices
  // Begins with the batches of an epoch's training, without the first ones; or with those of its
  // evaluation. False: `stop` was set. Errors of storage pass through, here and below.
  virtual bool begin_training(std::int64_t epoch, std::int64_t first,
                              const std::atomic<bool>* stop) = 0;
  virtual bool begin_evaluation(std::int64_t epoch, const std::atomic<bool>* stop) = 0;
  // Makes the next one of these the current one. False: there is none, or `stop` was set.
  virtual bool next(const std::atomic<bool>* stop) = 0;
  virtual const LoadedBatch& batch() const = 0;
  virtual std::int64_t done() const = 0;  // of these, left out or current once
  virtual LoadedWork take_work() = 0;
  // Gives memory back until something is begun.
  virtual void release() = 0;

  virtual nlohmann::ordered_json plan_json() const = 0;
  virtual std::string plan_text() const = 0;
  virtual EpochForecast forecast() const = 0;
};

}  // namespace ooc
