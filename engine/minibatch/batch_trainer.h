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

#include "engine/machine/run_budget.h"
#include "engine/minibatch/batch_loader.h"
#include "engine/minibatch/batch_memory.h"
#include "engine/minibatch/batch_programs.h"
#include "engine/train/epoch_trainer.h"
#include "engine/train/graph_inputs.h"

namespace ooc {

struct BatchTrainerOptions {
  RunBudget budget = {};      // its workers are those of the thread arena that calls
  std::string scratch = ".";  // a directory for what doesn't fit memory
  DType real = DType::kF32;
  // Told of batches that are done in the epoch, and how many there are.
  std::function<void(std::int64_t done, std::int64_t batches)> on_batch = {};
};

// One thread drives it. The dataset, the backend, the file system and the BlockIo outlive it.
class BatchTrainer final : public EpochTrainer {
 public:
  // DataError where the dataset can't be trained on, UsageError where options don't fit it or each
  // other, BudgetError where the budget doesn't do.
  BatchTrainer(Backend& backend, BlockIo& io, FileSystem& files, const Dataset& dataset,
               const RunConfig& config, const BatchTrainerOptions& options = {});

  std::optional<EpochRecord> run_epoch(const std::atomic<bool>* stop) override;
  std::int64_t peak_device_bytes() const override { return backend_.memory_peak(); }
  nlohmann::ordered_json plan_json() const override;
  nlohmann::ordered_json passes_json(const EpochRecord& record) const override;
  EpochForecast forecast() const override { return {}; }

  std::int64_t batches() const;  // of an epoch
  std::string plan_text() const;

 private:
  struct Sums;  // of losses, by split
  struct Work {
    const char* of;
    LoadedSeconds loading;
    LoadedBytes bytes;
    double computing = 0;
  };

  BatchTrainer(Backend& backend, BlockIo& io, FileSystem& files, const Dataset& dataset,
               const RunConfig& config, const BatchTrainerOptions& options,
               std::unique_ptr<BatchPrograms> programs);
  bool prepare(const std::atomic<bool>* stop);
  bool compute_once(const std::atomic<bool>* stop);
  void bind_parameters(const ModelProgram& program, BatchExecutor& executor);
  bool evaluates(std::int64_t epoch) const;
  const SeedBatches& training_seeds(std::int64_t epoch);
  SeedBatches evaluation_seeds(std::int64_t epoch) const;
  bool train(EpochRecord& record, const std::atomic<bool>* stop);
  bool evaluate(EpochRecord& record, const std::atomic<bool>* stop);
  // Seconds that it took.
  double run_batch(const ModelProgram& program, BatchExecutor& executor, const LoadedBatch& batch,
                   const StepCounts& counts, std::uint64_t step, Sums& sums);
  void update_parameters(std::int64_t epoch, std::int64_t step);
  const void* gradient(const ModelParameter& parameter);

  FileSystem& files_;
  BatchTrainerOptions options_;
  std::unique_ptr<BatchPrograms> programs_;
  GraphInputs inputs_;
  BatchExecutor training_, evaluation_;
  BatchBudget budget_;
  std::map<std::string, std::unique_ptr<DeviceBuffer>> gradients_;  // of parts, summed
  std::shared_ptr<const SampledVertices> vertices_;
  std::vector<std::uint32_t> train_, judged_;  // seeds
  SeedBatches seeds_;                          // of an epoch
  std::int64_t seeds_epoch_ = 0;
  std::optional<BatchLoader> training_batches_, evaluation_batches_;
  std::vector<Work> work_;  // of the last epoch
};

}  // namespace ooc
