#include "engine/model_program.h"

#include <utility>

#include "engine/gradients.h"
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
          computed_inputs(),
          {{"features", dataset.manifest().feature_dtype}}};
}

ModelProgram::ModelProgram(const ModelOptions& options, const GraphFacts& facts,
                           const GraphCounts& counts, Mode mode, Wanted wanted, DType real,
                           const PlanOptions& plan_options)
    : model_(build_model(options, facts, mode, real)) {
  std::vector<TensorId> roots;
  if (wanted.loss) roots.push_back(model_.loss);
  if (wanted.gradients) {
    gradients_ = add_gradients(model_.graph, {model_.loss, -1});
    for (const ModelParameter& parameter : model_.parameters) {
      if (parameter.trainable) roots.push_back(gradients_.at(parameter.tensor));
    }
  }
  if (wanted.logits) roots.push_back(model_.logits);
  if (wanted.embedding) roots.push_back(model_.embedding);
  staged_ = make_stages(model_.graph, mode == Mode::kTrain ? "training" : "evaluation", roots);
  plan_ = make_plan(staged_.program, counts, plan_options);
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
}

const void* ModelProgram::gradient(const ModelParameter& parameter) const {
  return executor_->reduction(staged_.value(gradients_.at(parameter.tensor))).data();
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

const void* ModelProgram::chunk(TensorId tensor, std::int64_t block, std::int64_t slice) const {
  return executor_->output_chunk(staged_.value(tensor), block, slice);
}

TensorLayout ModelProgram::layout(TensorId tensor) const {
  return executor_->layout(staged_.value(tensor));
}

}  // namespace ooc
