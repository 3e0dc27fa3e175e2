// Batches of a file (storage/batches/README.md) as those of a training: the first epochs in the
// order in which they were sampled, later ones of the same batches in an order of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/batches/batch_programs.h"
#include "engine/batches/stored_batch.h"
#include "engine/batches/stored_batch_reader.h"
#include "engine/machine/run_budget.h"
#include "engine/minibatch/batch_source.h"
#include "engine/train/run_config.h"
#include "sched/batch/batch_executor.h"
#include "storage/batches/batch_file.h"

namespace ooc {

// How they were sampled.
SamplingConfig sampling_of(const BatchesManifest& manifest);

// DataError where the batches can't be trained on: no features, labels or training batches.
// UsageError where options don't fit them or each other.
void check_trainable(const BatchFile& file, const RunConfig& config);
TrainedData trained_data(const BatchFile& file, const RunConfig& config);

class StoredBatches final : public BatchSource {
 public:
  struct Programs {
    const BatchPrograms& of;
    const BatchExecutor &training, &evaluation;
  };

  // All of it outlives this. UsageError where a program reads what batches don't have; BudgetError
  // where the budget doesn't do.
  StoredBatches(BlockIo& io, const BatchFile& file, const RunConfig& config,
                const Programs& programs, const RunBudget& budget);

  std::int64_t batches() const override;
  bool judges_valid() const override;
  bool begin_training(std::int64_t epoch, std::int64_t first,
                      const std::atomic<bool>* stop) override;
  bool begin_evaluation(std::int64_t epoch, const std::atomic<bool>* stop) override;
  bool next(const std::atomic<bool>* stop) override;
  const LoadedBatch& batch() const override { return current_->loaded; }
  std::int64_t done() const override { return left_out_ + reader_->index() + 1; }
  LoadedWork take_work() override;
  void release() override {}  // it is what reads from files

  nlohmann::ordered_json plan_json() const override;
  std::string plan_text() const override;
  EpochForecast forecast() const override;

 private:
  // Of one program.
  struct Kind {
    BatchLoaderOptions options;
    StoredBatch stored;
    LoadedBatch loaded;

    Kind(const ModelProgram& program, const BatchFile& file);
  };

  std::vector<std::int64_t> training_order(std::int64_t epoch) const;
  std::int64_t needed_bytes(const Programs& programs, const RunBudget& budget) const;
  std::int64_t bytes_of(const std::vector<std::int64_t>& batches) const;

  const BatchFile& file_;
  const RunConfig& config_;
  RunBudget budget_;
  std::optional<StoredBatchReader> reader_;
  Kind training_, evaluation_;
  Kind* current_ = nullptr;
  std::vector<std::int64_t> judged_;  // batches of an evaluation
  std::int64_t needed_bytes_ = 0;     // of memory
  std::int64_t left_out_ = 0, taken_bytes_ = 0;
  LoadedSeconds seconds_;
};

}  // namespace ooc
