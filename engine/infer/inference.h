// Applies a trained model to a dataset: logits, classes or embeddings, in the original vertex
// order.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/infer/results.h"
#include "engine/train/checkpoint.h"
#include "engine/train/training_plan.h"
#include "kernels/device/backend.h"
#include "storage/dataset/dataset.h"
#include "storage/io/block_file.h"

namespace ooc {

// What is asked for if nobody says otherwise.
Output default_output(Task task);

inline constexpr std::int64_t kAllLayers = 0;

struct InferenceOptions {
  Output output = Output::kLogits;
  std::string path;  // .npy, .h5 or .csv
  // Of embeddings: the rows after this layer, from 1. kAllLayers: after each, OUT.npy being
  // OUT.layer1.npy and so on. None: what the last layer or the head reads.
  std::optional<std::int64_t> layer = {};
  bool force = false;                 // replace what is there
  RunBudget budget = {};              // its workers are those of the thread arena that calls
  std::vector<Backend*> others = {};  // beside the first device
  std::string scratch = ".";          // directory for what doesn't fit memory
  bool may_map = false;               // the dataset, instead of reading it by `io`, where that pays
  std::vector<Metric> metrics =
      {};  // to score the splits by; none: those of the run, where that can be
  SamplingConfig sampling = {};  // with fan-outs: by sampled batches, on the CPU
  // Of sampled batches: told of those that are done, and how many there are.
  std::function<void(std::int64_t done, std::int64_t batches)> on_batch = {};
  // Told, while batches are waited for, what share of preparing them is done.
  std::function<void(double share)> on_wait = {};
};

struct InferenceResult {
  std::vector<std::string> paths;  // that were written
  // Of the dataset's splits, by metric; empty without splits, or labels of the model's task.
  std::vector<Scores> scores;
};

// Writes the files, and the ids of their rows where they were remapped
// (storage/dataset/result_file.h). DataError where the model doesn't fit the dataset (feature
// columns), or metrics are asked for that it has no labels for; UsageError where a file is there,
// the output or a metric isn't one of the model's task, or the model lacks the layer; BudgetError
// where it doesn't fit the budget; Interrupted if `stop` was set, with nothing left.
InferenceResult run_inference(FileSystem& files, Backend& backend, BlockIo& io,
                              const Dataset& dataset, const Checkpoint& checkpoint,
                              const InferenceOptions& options, const std::atomic<bool>* stop);

}  // namespace ooc
