#include "engine/train/epoch_trainer.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "engine/model/parts/class_weights.h"
#include "storage/base/errors.h"

namespace ooc {

void check_trainable(const Dataset& dataset, const RunConfig& config) {
  const auto require = [&](bool is_met, const char* what, const char* remedy) {
    if (!is_met) throw DataError(what, dataset.path(), remedy);
  };
  require(dataset.tensor("features") != nullptr, "dataset without features, training needs them",
          "import it with --features FILE, degrees or random:N");
  require(dataset.tensor("labels") != nullptr, "dataset without labels, training needs them",
          "import it with --labels");
  check_config(config, dataset.manifest().labels, dataset.manifest().classes, dataset.path());
  require(dataset.has_splits(), "dataset without splits, training needs a train split",
          "import it with --train, --valid and --test");
  require(dataset.manifest().split_counts[0] > 0, "dataset with an empty train split",
          "import it with --train");
  dataset.check_labels();
  // Weights that nothing weighs are to be refused before there is a run.
  if (config.model.class_weights.weigh()) {
    class_weights_of(dataset, config.model.class_weights, config.model.task);
  }
}

TrainedData trained_data(const Dataset& dataset, const RunConfig& config) {
  const ModelOptions& model = config.model;
  TrainedData data{dataset.manifest(), dataset.path(), dataset.manifest().checksum, {}};
  if (model.class_weights.weigh()) {
    data.class_weights = class_weights_of(dataset, model.class_weights, model.task);
  }
  return data;
}

EpochTrainer::EpochTrainer(Backend& backend, BlockIo& io, TrainedData data, const RunConfig& config,
                           DType real, const std::vector<ModelParameter>& parameters)
    : backend_(backend),
      io_(io),
      data_(std::move(data)),
      config_(config),
      parameters_(backend, real, parameters) {
  parameters_.initialise(static_cast<std::uint64_t>(config.seed));
  if (!data_.class_weights.empty()) parameters_.set(kClassWeightsParameter, data_.class_weights);
  state_.parameters = parameters_.capture();
  state_.best.scores.resize(config.metrics.size());
  state_.last.resize(config.metrics.size());
}

OptimizerOptions EpochTrainer::optimizer(std::int64_t epoch) const {
  return {config_.optimizer, learning_rate(config_, epoch), config_.weight_decay, config_.momentum};
}

void EpochTrainer::check_finite(double loss, const char* what, std::int64_t epoch) {
  if (std::isfinite(loss)) return;
  throw RunError(fmt::format("the {} is {}", what, loss), fmt::format("epoch {}", epoch),
                 "try a smaller --lr");
}

Checkpoint EpochTrainer::checkpoint() const {
  const Manifest& manifest = data_.manifest;
  Checkpoint checkpoint;
  checkpoint.config = config_;
  checkpoint.dataset_checksum = data_.checksum;
  checkpoint.feature_cols = manifest.feature_cols;
  checkpoint.feature_scaling = manifest.feature_scaling;
  checkpoint.classes = manifest.classes;
  checkpoint.class_names = manifest.class_names;
  checkpoint.edge_types = manifest.edge_types;
  checkpoint.edge_weights = manifest.edges.data.weights;
  checkpoint.state = state_;
  return checkpoint;
}

void EpochTrainer::restore(Checkpoint checkpoint, const std::string& where) {
  if (checkpoint.dataset_checksum != data_.checksum) {
    throw DataError(
        fmt::format("the run was trained on another dataset than {} is now", data_.path), where,
        "bring the dataset back as it was, or train anew");
  }
  const std::int64_t batches = checkpoint.state.batches;
  if (batches < 0 || batches > epoch_batches()) {
    throw DataError(fmt::format("it has {} batches of an epoch of {}", batches, epoch_batches()),
                    where, "use an earlier checkpoint of the run");
  }
  parameters_.restore(checkpoint.state.parameters, where);
  state_ = std::move(checkpoint.state);
  on_restored();
}

void EpochTrainer::keep_if_best(const EpochRecord& record) {
  state_.last = record.scores;
  // Where the metric isn't defined, such as without a valid split, the latest evaluation counts as
  // the best; ties keep the earlier epoch.
  const double best = state_.best.scores.front().valid, valid = record.scores.front().valid;
  const bool better = lower_is_better(config_.metrics.front()) ? valid < best : valid > best;
  if (state_.best.epoch == 0 || std::isnan(best) || better) {
    state_.best = {record.epoch, record.scores, state_.parameters};
    for (ParameterValues& parameter : state_.best.parameters) parameter.m = parameter.v = {};
    state_.evaluations_since_best = 0;
  } else {
    ++state_.evaluations_since_best;
  }
}

}  // namespace ooc
