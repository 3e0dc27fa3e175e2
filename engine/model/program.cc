#include "engine/model/program.h"

#include <utility>

#include "engine/model/build.h"
#include "sched/plan/io_chunks.h"

namespace ooc {

GraphFacts facts_of(const Manifest& manifest) {
  const EdgeData& data = manifest.edges.data;
  return {manifest.edges.vertices, manifest.feature_cols, manifest.classes, manifest.train_labels(),
          manifest.edge_types,     data.feature_cols,     data.weights};
}

namespace {

// What nobody wants to read needn't outlive a rewrite.
Model with_wanted_layers(Model model, const Wanted& wanted) {
  if (!wanted.layers) model.layers.clear();
  return model;
}

RewrittenModel rewrite(Model model, const Rewrites& rewrites) {
  RewrittenModel out{std::move(model), {}};
  out.model = rewrite_model(std::move(out.model), rewrites, out.precomputed);
  return out;
}

EdgeBytes edge_bytes(const EdgeFile& file) {
  EdgeBytes edges{static_cast<std::int64_t>(file.payload_bytes())};
  for (std::uint64_t chunk = 0; chunk < file.file().shape().chunk_count; ++chunk) {
    edges.chunk_bytes.push_back(static_cast<std::int64_t>(file.file().entry(chunk).bytes));
  }
  return edges;
}

}  // namespace

namespace {

std::vector<std::int64_t> in_edges_of_blocks(const Dataset& dataset) {
  const EdgeLayout& edges = dataset.manifest().edges;
  const VertexTensorFile& degrees = *dataset.tensor("degrees");
  std::vector<std::int64_t> sums;
  std::vector<std::int32_t> rows(static_cast<std::size_t>(edges.block_rows * kDegreeColumns));
  for (std::int64_t block = 0; block < edges.block_count(); ++block) {
    const std::int64_t first = block * edges.block_rows;
    const std::int64_t count = std::min(edges.block_rows, edges.vertices - first);
    degrees.read_rows(first, count, rows.data());
    sums.push_back(0);
    for (std::int64_t i = 0; i < count; ++i) {
      sums.back() += rows[static_cast<std::size_t>(i * kDegreeColumns + kInDegree)];
    }
  }
  return sums;
}

}  // namespace

GraphCounts counts_of(const Dataset& dataset, std::int64_t devices) {
  GraphCounts counts;
  counts.edges = dataset.manifest().edges;
  counts.in = edge_bytes(dataset.edge_file(Direction::kIn));
  counts.out = edge_bytes(dataset.edge_file(Direction::kOut));
  counts.symmetric = dataset.manifest().symmetric;
  counts.stored_dtypes["features"] = dataset.manifest().feature_dtype;
  counts.train_vertices = dataset.manifest().split_counts[0];
  if (devices > 1) counts.block_edges = in_edges_of_blocks(dataset);
  return counts;
}

ModelProgram::ModelProgram(const ModelOptions& options, const GraphFacts& facts, Mode mode,
                           Wanted wanted, DType real, const ProgramOptions& how)
    : ModelProgram(build_model(options, facts, mode, real),
                   mode == Mode::kTrain ? "training" : "evaluation", wanted, how) {}

ModelProgram::ModelProgram(Model model, const std::string& name, Wanted wanted,
                           const ProgramOptions& how)
    : ModelProgram(rewrite(with_wanted_layers(std::move(model), wanted), how.rewrites), name,
                   wanted, how) {}

ModelProgram::ModelProgram(RewrittenModel model, const std::string& name, Wanted wanted,
                           const ProgramOptions& how)
    : precomputed_{std::move(model.precomputed)}, model_(std::move(model.model)) {
  if (wanted.gradients) gradients_ = add_gradients(model_.graph, {model_.loss, -1});
  if (how.rewrites.order) model_ = gather_sparse_rows(std::move(model_), gradients_, how.rewrites);
  if (how.rewrites.common) merge_common_operators();
  std::vector<TensorId> roots = gradient_roots();
  if (wanted.loss) roots.insert(roots.begin(), model_.loss);
  if (wanted.logits) roots.push_back(model_.logits);
  for (const TensorId layer : model_.layers) {
    if (!wanted.logits || layer != model_.logits) roots.push_back(layer);
  }
  if (wanted.zero_factors && model_.zero_factors >= 0) roots.push_back(model_.zero_factors);
  make_stages_of(name, roots, {}, how);
}

ModelProgram::ModelProgram(Model training, Model evaluation, Wanted wanted,
                           const ProgramOptions& how)
    : precomputed_(2),
      model_(rewrite_model(with_wanted_layers(std::move(training), wanted), how.rewrites,
                           precomputed_[0])) {
  OOC_CHECK(!wanted.layers);
  gradients_ = add_gradients(model_.graph, {model_.loss, -1});
  evaluation = rewrite_model(with_wanted_layers(std::move(evaluation), wanted), how.rewrites,
                             precomputed_[1]);
  if (how.rewrites.order) {
    model_ = gather_sparse_rows(std::move(model_), gradients_, how.rewrites);
    Gradients none;
    evaluation = gather_sparse_rows(std::move(evaluation), none, how.rewrites);
  }
  model_ = with_evaluation(std::move(model_), evaluation);
  if (how.rewrites.common) merge_common_operators();
  std::vector<TensorId> roots = gradient_roots(), evaluated;
  roots.insert(roots.begin(), model_.loss);
  if (wanted.loss) evaluated.push_back(model_.evaluated.loss);
  if (wanted.logits) evaluated.push_back(model_.evaluated.logits);
  make_stages_of("training and evaluation", roots, evaluated, how);
}

// Backward says some things twice, such as an output's gradient at the edges.
void ModelProgram::merge_common_operators() {
  Rewritten merged = merge_common(model_.graph);
  model_ = rewritten(std::move(model_), gradients_, std::move(merged));
}

std::vector<TensorId> ModelProgram::gradient_roots() const {
  std::vector<TensorId> roots;
  if (gradients_.empty()) return roots;
  for (const ModelParameter& parameter : model_.parameters) {
    if (!parameter.trainable) continue;
    const std::vector<TensorId>& parts = gradients_.at(parameter.tensor);
    roots.insert(roots.end(), parts.begin(), parts.end());
  }
  return roots;
}

void ModelProgram::make_stages_of(const std::string& name, std::vector<TensorId> roots,
                                  const std::vector<TensorId>& beside, const ProgramOptions& how) {
  const Rewrites& rewrites = how.rewrites;
  if (!rewrites.dead) {
    const std::vector<TensorId> unread = unread_results(model_.graph);
    roots.insert(roots.end(), unread.begin(), unread.end());
  }
  staged_ = make_stages(model_.graph, name, roots, {rewrites.fusion, how.recompute, rewrites.zeros},
                        beside);
}

Evaluated ModelProgram::evaluated() const {
  if (model_.evaluated.loss >= 0) return model_.evaluated;
  return {model_.logits, model_.loss};
}

std::vector<ValueId> ModelProgram::gradient_parts(const ModelParameter& parameter) const {
  std::vector<ValueId> values;
  const auto parts = gradients_.find(parameter.tensor);
  if (parts == gradients_.end()) return values;
  for (const TensorId part : parts->second) values.push_back(staged_.value(part));
  return values;
}

std::int64_t ModelProgram::sum_bytes() const {
  std::int64_t bytes = 0;
  for (const ModelParameter& parameter : model_.parameters) {
    if (gradient_parts(parameter).size() < 2) continue;
    bytes += parameter.rows * parameter.cols * static_cast<std::int64_t>(dtype_bytes(real()));
  }
  return bytes;
}

}  // namespace ooc
