#include "engine/infer/model_fit.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "engine/graph/edge_operators.h"
#include "engine/model/build.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr DType kReal = DType::kF32;

// Whether labels stand for other classes than the model's: names are numbered anew by each import.
bool names_differ(const Dataset& dataset, const Checkpoint& checkpoint) {
  const auto& names = dataset.manifest().class_names;
  return !names.empty() && !checkpoint.class_names.empty() && names != checkpoint.class_names;
}

// Why the dataset's labels aren't those of the model's task; empty where they are. A graph that the
// model hasn't seen may have others.
std::string misfit_of_labels(const Dataset& dataset, const Checkpoint& checkpoint) {
  if (names_differ(dataset, checkpoint)) return "its classes are others than the model's";
  const LabelKind labels = dataset.manifest().labels;
  const LabelKind trained = labels_of(checkpoint.config.model.task);
  const std::int64_t classes = dataset.manifest().classes;
  const bool fits =
      trained == LabelKind::kSingle ? classes <= checkpoint.classes : classes == checkpoint.classes;
  if (labels == trained && fits) return "";
  return fmt::format("it has {}, the model was trained on {}", describe_labels(labels, classes),
                     describe_labels(trained, checkpoint.classes));
}

void check_fits(const Dataset& dataset, const Checkpoint& checkpoint) {
  const std::int64_t cols = dataset.manifest().feature_cols;
  if (dataset.tensor("features") == nullptr || cols != checkpoint.feature_cols) {
    throw DataError(fmt::format("dataset has {} feature columns, the model was trained on {}", cols,
                                checkpoint.feature_cols),
                    dataset.path(), "use a dataset with the same features");
  }
  const FeatureScaling& scaling = dataset.manifest().feature_scaling;
  if (!scaling.fits(checkpoint.feature_scaling)) {
    throw DataError(fmt::format("features normalised as {}, those of the model's graph as {}",
                                describe(scaling), describe(checkpoint.feature_scaling)),
                    dataset.path(), "import the dataset with --feature-norm-from RUN");
  }
  if (checkpoint.edge_types > 1 && dataset.manifest().edge_types == 0) {
    throw DataError(fmt::format("dataset without types of edges, the model was trained on {}",
                                checkpoint.edge_types),
                    dataset.path(), "import it with the types of its edges");
  }
  if (dataset.manifest().edge_types > std::max<std::int64_t>(1, checkpoint.edge_types)) {
    throw DataError(fmt::format("dataset has {} types of edges, the model was trained on {}",
                                dataset.manifest().edge_types, checkpoint.edge_types),
                    dataset.path(), "use a dataset with the same types");
  }
}

}  // namespace

std::vector<Metric> metrics_for(const Dataset& dataset, const Checkpoint& checkpoint,
                                const InferenceOptions& options) {
  const bool are_wanted = !options.metrics.empty();
  const std::vector<Metric>& metrics = are_wanted ? options.metrics : checkpoint.config.metrics;
  check_metrics(metrics, checkpoint.config.model.task, checkpoint.classes);
  const bool labelled = dataset.has_splits() && dataset.tensor("labels") != nullptr;
  const std::string why =
      labelled ? misfit_of_labels(dataset, checkpoint) : "it has no labels and splits";
  if (why.empty()) return metrics;
  if (are_wanted) {
    throw DataError(fmt::format("--metric, but {}", why), dataset.path(),
                    "leave it out, or import the dataset with labels of the model's task");
  }
  if (labelled) spdlog::warn("the splits of {} are not scored: {}", dataset.path(), why);
  return {};
}

void check_output(Output output, Task task) {
  const bool values = task == Task::kRegression;
  if (output == Output::kEmbeddings || (output == Output::kValues) == values) return;
  throw UsageError(values ? "a model of values has neither logits nor classes"
                          : "a model of classes has no values",
                   "--what",
                   values ? "ask for values or embeddings"
                          : "ask for logits, probabilities, classes or embeddings");
}

Model model_for(const Dataset& dataset, const Checkpoint& checkpoint) {
  check_fits(dataset, checkpoint);
  const ModelOptions& options = checkpoint.config.model;
  GraphFacts facts = facts_of(dataset);
  facts.classes = checkpoint.classes;
  facts.edge_types = checkpoint.edge_types;
  if (options.edge_weights != EdgeWeights::kIgnore) {
    facts.edge_weights = options.edge_weights == EdgeWeights::kUse || checkpoint.edge_weights;
  }
  Model model = build_model(options, facts, Mode::kEvaluate, kReal);
  if (model.graph.has_input(kEdgeWeightsInput) && !dataset.manifest().edges.data.weights) {
    throw DataError("dataset without weights of edges, the model was trained with them",
                    dataset.path(), "import it with the weights of its edges");
  }
  return model;
}

}  // namespace ooc
