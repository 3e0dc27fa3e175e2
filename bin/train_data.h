// What ooc-train trains on: a dataset, or batches that were sampled of one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/minibatch/batch_trainer.h"
#include "storage/batches/batch_file.h"
#include "storage/dataset/dataset.h"

namespace ooc {

class TrainData {
 public:
  // NAME.ooc or NAME.batches. DataError where it is neither, or damaged.
  TrainData(const std::string& path, VerifyPolicy verify);

  const Manifest& manifest() const {
    return batches_ ? batches_->manifest().dataset : dataset_->manifest();
  }
  const std::string& checksum() const {
    return batches_ ? batches_->manifest().checksum : dataset_->manifest().checksum;
  }
  // Null: it is batches.
  const Dataset* dataset() const { return dataset_ ? &*dataset_ : nullptr; }

  // Of batches, how they were sampled, from then on. UsageError where the configuration says
  // otherwise.
  void set_sampling(RunConfig& config) const;
  // All of it, and this, outlive the trainer. Errors as BatchTrainer's.
  std::unique_ptr<BatchTrainer> batch_trainer(Backend& backend, BlockIo& io,
                                              const RunConfig& config,
                                              const BatchTrainerOptions& options) const;

 private:
  std::optional<Dataset> dataset_;
  std::optional<BatchFile> batches_;
};

}  // namespace ooc
