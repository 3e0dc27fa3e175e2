// Sampled training: an epoch goes once over the training vertices, batch by batch; each batch is a
// forward and backward over the vertices that its seeds reach, and a step of the optimiser.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/batches/batch_programs.h"
#include "engine/machine/run_budget.h"
#include "engine/minibatch/batch_source.h"
#include "engine/minibatch/exact_evaluation.h"
#include "engine/minibatch/loss_sums.h"
#include "engine/train/epoch_trainer.h"
#include "storage/batches/batch_file.h"

namespace ooc {

struct BatchTrainerOptions {
  RunBudget budget = {};      // its workers are those of the thread arena that calls
  std::string scratch = ".";  // a directory for what doesn't fit memory
  DType real = DType::kF32;
  // Told of batches that are done in an epoch, and how many there are.
  std::function<void(std::int64_t epoch, std::int64_t done, std::int64_t batches)> on_batch = {};
  // Told, while batches are waited for, what share of preparing them is done.
  std::function<void(double share)> on_wait = {};
};

// One thread drives it. What it trains on, the backend, the file system and the BlockIo outlive it.
class BatchTrainer final : public EpochTrainer {
 public:
  // Of batches that are sampled when they are needed, or of those in a file. DataError where they
  // can't be trained on, UsageError where options don't fit them or each other, BudgetError where
  // the budget doesn't do.
  BatchTrainer(Backend& backend, BlockIo& io, FileSystem& files, const Dataset& dataset,
               const RunConfig& config, const BatchTrainerOptions& options = {});
  BatchTrainer(Backend& backend, BlockIo& io, const BatchFile& file, const RunConfig& config,
               const BatchTrainerOptions& options = {});

  std::optional<EpochRecord> run_epoch(const std::atomic<bool>* stop) override;
  bool scores_anew() const override { return exact_ && !config_.sampling.eval_fanouts.exact; }
  std::optional<std::vector<Scores>> final_scores(const std::atomic<bool>* stop) override;
  std::int64_t peak_device_bytes() const override { return backend_.memory_peak(); }
  nlohmann::ordered_json plan_json() const override;
  nlohmann::ordered_json passes_json(const EpochRecord& record) const override;
  EpochForecast forecast() const override { return source_->forecast(); }

  std::int64_t batches() const { return source_->batches(); }  // of an epoch
  std::string plan_text() const { return source_->plan_text(); }

 private:
  std::int64_t epoch_batches() const override { return source_->batches(); }
  struct Work {
    const char* of;
    LoadedWork loaded;
    double computing = 0;
  };

  BatchTrainer(Backend& backend, BlockIo& io, TrainedData data, const RunConfig& config,
               const BatchTrainerOptions& options);
  BatchTrainer(Backend& backend, BlockIo& io, TrainedData data, const RunConfig& config,
               const BatchTrainerOptions& options, BatchPrograms programs);
  void bind_parameters(const ModelProgram& program, BatchExecutor& executor);
  bool train(EpochRecord& record, const std::atomic<bool>* stop);
  bool evaluate(EpochRecord& record, const std::atomic<bool>* stop);
  bool evaluate_exactly(EpochRecord& record, const std::atomic<bool>* stop);
  bool judge(EpochRecord& record, const std::atomic<bool>* stop);
  // Of the epoch at hand: keeps what is done of it as state().
  void keep_state(std::int64_t batches, const LossSums& sums);
  // Memory of batches, until the next ones.
  void release();
  // The current one. Seconds that it took.
  double run_batch(const ModelProgram& program, BatchExecutor& executor, const StepCounts& counts,
                   std::uint64_t step, LossSums& sums);
  void update_parameters(std::int64_t epoch, std::int64_t step);
  const void* gradient(const ModelParameter& parameter);

  BatchTrainerOptions options_;
  BatchPrograms programs_;
  BatchExecutor training_, evaluation_;
  std::map<std::string, std::unique_ptr<DeviceBuffer>> gradients_;  // of parts, summed
  std::optional<ExactEvaluation> exact_;                            // where one is asked for
  std::unique_ptr<BatchSource> source_;
  std::vector<Work> work_;  // of the last epoch
};

}  // namespace ooc
