// A training's state between two epochs or batches, and its file: HDF5, with parameters under their
// names.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/metrics/metrics.h"
#include "engine/train/parameters.h"
#include "engine/train/run_config.h"
#include "storage/io/file.h"

namespace ooc {

// The best evaluation so far and the parameters it had.
struct BestModel {
  std::int64_t epoch = 0;                   // 0: none yet
  std::vector<Scores> scores;               // of the run's metrics; the first one is the best
  std::vector<ParameterValues> parameters;  // without the optimiser's moments
};

// How far a training has come.
struct TrainedTo {
  std::int64_t epoch = 0;    // whole epochs done
  std::int64_t batches = 0;  // of the next one that are done; above 0 in sampled training alone

  auto operator<=>(const TrainedTo&) const = default;
};

struct TrainingState {
  std::int64_t epoch = 0;  // whole epochs done
  std::vector<ParameterValues> parameters;
  BestModel best;
  std::int64_t evaluations_since_best = 0;
  std::vector<Scores> last;  // of the latest evaluation
  // Of the next epoch: batches that are done, and the sums of their losses.
  std::int64_t batches = 0;
  std::vector<double> batch_losses;

  TrainedTo trained_to() const { return {epoch, batches}; }
};

struct Checkpoint {
  RunConfig config;
  std::string dataset_checksum;    // of the manifest of the graph it was trained on
  std::int64_t feature_cols = 0;   // of that graph
  FeatureScaling feature_scaling;  // of that graph's features
  std::int64_t classes = 0;
  std::vector<std::string> class_names;  // empty: they have none
  std::int64_t edge_types = 0;
  bool edge_weights = false;  // whether that graph has some, for EdgeWeights::kAuto
  TrainingState state;
};

// Atomic: `path` holds its old contents or the new. `real` is the parameters' type.
void write_checkpoint(FileSystem& files, const std::string& path, const Checkpoint& checkpoint,
                      DType real);
// The best model alone, as a checkpoint of its epoch.
void write_best(FileSystem& files, const std::string& path, const Checkpoint& checkpoint,
                DType real);
// DataError: missing, damaged, no checkpoint, or of another scalar type.
Checkpoint read_checkpoint(FileSystem& files, const std::string& path, DType real);
// The same less what only a training needs: the optimiser's moments and the best parameters.
Checkpoint read_model(FileSystem& files, const std::string& path, DType real);

}  // namespace ooc
