#include "engine/model_program.h"

#include <set>
#include <utility>

#include "storage/errors.h"

namespace ooc {

GraphFacts facts_of(const Dataset& dataset) {
  const Manifest& manifest = dataset.manifest();
  const EdgeData& data = manifest.edges.data;
  return {dataset.vertices(),  manifest.feature_cols, manifest.classes, manifest.split_counts[0],
          manifest.edge_types, data.feature_cols,     data.weights};
}

GraphCounts counts_of(const Dataset& dataset) {
  return {dataset.manifest().edges,
          static_cast<std::int64_t>(dataset.edge_file(Direction::kIn).payload_bytes()),
          static_cast<std::int64_t>(dataset.edge_file(Direction::kOut).payload_bytes()),
          {},
          {{"features", dataset.manifest().feature_dtype}}};
}

namespace {

// What operations make and no other reads.
std::vector<TensorId> unread_results(const TensorGraph& graph) {
  std::set<TensorId> read;
  for (const Operation& operation : graph.operations()) {
    read.insert(operation.inputs.begin(), operation.inputs.end());
  }
  std::vector<TensorId> unread;
  for (const Operation& operation : graph.operations()) {
    const bool on_edges = graph.shape(operation.output).space == Space::kEdge;
    if (!on_edges && !read.contains(operation.output)) unread.push_back(operation.output);
  }
  return unread;
}

}  // namespace

ModelProgram::ModelProgram(const ModelOptions& options, const GraphFacts& facts,
                           const GraphCounts& counts, Mode mode, Wanted wanted, DType real,
                           const ProgramOptions& program_options)
    : ModelProgram(build_model(options, facts, mode, real), counts,
                   mode == Mode::kTrain ? "training" : "evaluation", wanted, program_options) {}

ModelProgram::ModelProgram(Model model, const GraphCounts& counts, const std::string& name,
                           Wanted wanted, const ProgramOptions& program_options)
    : model_(rewrite_model(std::move(model), program_options.rewrites, precomputed_)) {
  const Rewrites& rewrites = program_options.rewrites;
  if (wanted.gradients) {
    gradients_ = add_gradients(model_.graph, {model_.loss, -1});
    if (rewrites.common) merge_common_gradients();
  }
  std::vector<TensorId> roots;
  if (wanted.loss) roots.push_back(model_.loss);
  for (const ModelParameter& parameter : model_.parameters) {
    if (!wanted.gradients || !parameter.trainable) continue;
    const std::vector<TensorId>& parts = gradients_.at(parameter.tensor);
    roots.insert(roots.end(), parts.begin(), parts.end());
  }
  if (wanted.logits) roots.push_back(model_.logits);
  if (wanted.embedding) roots.push_back(model_.embedding);
  if (!rewrites.dead) {
    const std::vector<TensorId> unread = unread_results(model_.graph);
    roots.insert(roots.end(), unread.begin(), unread.end());
  }
  staged_ = make_stages(model_.graph, name, roots, rewrites.fusion);
  GraphCounts with_precomputed = counts;
  for (const Hoisted& hoisted : precomputed_.tensors) {
    with_precomputed.memory_inputs.insert(hoisted.input);
  }
  plan_ =
      make_plan(staged_.program, with_precomputed, {program_options.span_group, rewrites.fusion});
}

// Backward says some things twice, such as an output's gradient at the edges.
void ModelProgram::merge_common_gradients() {
  Rewritten merged = merge_common(model_.graph);
  Gradients gradients;
  for (const auto& [tensor, parts] : gradients_) {
    for (const TensorId part : parts) gradients[merged.at(tensor)].push_back(merged.at(part));
  }
  gradients_ = std::move(gradients);
  model_ = rewritten(std::move(model_), std::move(merged));
}

void ModelProgram::bind(Backend& backend, const Dataset& dataset, const GraphInputs& inputs,
                        Arena arena, ParameterStore& parameters) {
  backend_ = &backend;
  executor_ = std::make_unique<Executor>(backend, dataset, staged_.program, plan_, std::move(arena),
                                         inputs.sources());
  for (const ModelParameter& parameter : model_.parameters) {
    const ValueId value = staged_.value(parameter.tensor);
    if (value >= 0) executor_->bind_parameter(value, parameters.data(parameter.name));
  }
  for (const ModelParameter& parameter : model_.parameters) {
    const std::size_t bytes = summed_bytes(parameter);
    if (bytes > 0) sums_[parameter.tensor] = backend.allocate(bytes);
  }
}

// 0 where at most one operation reads the parameter.
std::size_t ModelProgram::summed_bytes(const ModelParameter& parameter) const {
  const auto parts = gradients_.find(parameter.tensor);
  if (parts == gradients_.end() || parts->second.size() < 2) return 0;
  const auto count = static_cast<std::size_t>(parameter.rows * parameter.cols);
  return count * dtype_bytes(model_.graph.real());
}

std::int64_t ModelProgram::sum_bytes() const {
  std::size_t bytes = 0;
  for (const ModelParameter& parameter : model_.parameters) bytes += summed_bytes(parameter);
  return static_cast<std::int64_t>(bytes);
}

const void* ModelProgram::gradient(const ModelParameter& parameter) {
  const std::vector<TensorId>& parts = gradients_.at(parameter.tensor);
  const auto part = [&](std::size_t i) {
    return executor_->reduction(staged_.value(parts[i])).data();
  };
  if (parts.size() == 1) return part(0);
  void* sum = sums_.at(parameter.tensor)->data();
  backend_->copy(sum, part(0), summed_bytes(parameter), CopyKind::kDeviceToDevice);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    backend_->accumulate(model_.graph.real(), parameter.rows * parameter.cols, sum, part(i));
  }
  return sum;
}

std::vector<double> ModelProgram::read_reduction(TensorId tensor) const {
  const TensorShape& shape = model_.graph.shape(tensor);
  OOC_CHECK(shape.dtype == DType::kF64);
  std::vector<double> values(static_cast<std::size_t>(shape.rows * shape.cols));
  backend_->copy(values.data(), executor_->reduction(staged_.value(tensor)).data(),
                 values.size() * sizeof(double), CopyKind::kDeviceToHost);
  backend_->wait(backend_->record());
  return values;
}

std::array<SplitLoss, 3> ModelProgram::losses() const {
  const std::vector<double> sums = read_reduction(model_.loss);
  const std::size_t cols = sums.size() / 3;  // loss, correct, vertices and, if any, weights
  std::array<SplitLoss, 3> losses;
  for (std::size_t split = 0; split < losses.size(); ++split) {
    const double* row = sums.data() + split * cols;
    losses[split] = {row[0] / row[cols - 1], row[1] / row[2]};
  }
  return losses;
}

const void* ModelProgram::chunk(TensorId tensor, std::int64_t block, std::int64_t slice) const {
  return executor_->output_chunk(staged_.value(tensor), block, slice);
}

TensorLayout ModelProgram::layout(TensorId tensor) const {
  return executor_->layout(staged_.value(tensor));
}

MetricResult run_scores(const ModelProgram& program, const GraphInputs& inputs, Metric metric,
                        Task task) {
  if (needs_logits(metric, task)) {
    const ProgramOutput logits(program, program.model().logits);
    return compute_metric(metric, task, logits, *inputs.sources().at("labels"),
                          *inputs.sources().at("splits"));
  }
  const auto [train, valid, test] = program.losses();
  return {{train.accuracy, valid.accuracy, test.accuracy}, 0};
}

}  // namespace ooc
