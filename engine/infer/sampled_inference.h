// A model's rows of all vertices by sampled batches: a vertex takes so many in-edges at most, as in
// sampled training, and each batch is one of vertices that lie beside each other.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/batches/batch_loader.h"
#include "engine/infer/collected_rows.h"
#include "engine/minibatch/loss_sums.h"
#include "engine/model/program.h"
#include "engine/train/parameters.h"
#include "engine/train/run_config.h"
#include "sched/batch/batch_executor.h"

namespace ooc {

struct SampledInferenceOptions {
  SamplingConfig sampling;
  std::uint64_t seed = 0;
  RunBudget budget = {};       // its workers are those of the thread arena that calls
  std::int64_t own_bytes = 0;  // of the budget, taken besides
  std::string scratch = ".";   // a directory
  // Told of batches that are done, and how many there are.
  std::function<void(std::int64_t done, std::int64_t batches)> on_batch = {};
  std::function<void(double share)> on_wait = {};  // as BatchLoaderOptions'
};

// One thread.
class SampledInference {
 public:
  // `program`: batch_program() of a model in evaluation; of its outputs the rows of `outputs` are
  // collected. All of it outlives this. BudgetError where the budget doesn't do, IoError where
  // temporary files have no room by budget.scratch_bytes.
  SampledInference(Backend& backend, BlockIo& io, FileSystem& files, const Dataset& dataset,
                   const ModelProgram& program, std::span<const TensorId> outputs,
                   ParameterStore& parameters, const SampledInferenceOptions& options);

  // False: `stop` was set. Errors of storage pass through.
  bool run(const std::atomic<bool>* stop);
  // Of all vertices, in the dataset's order.
  BlockRows rows(std::size_t output) { return collected_[output]->rows(bytes_read_); }
  // Of train, valid and test; of a loss that was wanted.
  std::array<SplitLoss, 3> losses() const {
    return {sums_.of(Split::kTrain), sums_.of(Split::kValid), sums_.of(Split::kTest)};
  }

 private:
  void run_batch(const LoadedBatch& batch);

  Backend& backend_;
  BlockIo& io_;
  FileSystem& files_;
  const Dataset& dataset_;
  const ModelProgram& program_;
  std::vector<TensorId> outputs_;
  SampledInferenceOptions options_;
  GraphInputs inputs_;
  BatchExecutor executor_;
  BatchLoaderOptions loading_;
  std::vector<std::unique_ptr<CollectedRows>> collected_;
  LossSums sums_;
  std::int64_t bytes_read_ = 0;
};

}  // namespace ooc
