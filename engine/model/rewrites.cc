#include "engine/model/rewrites.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/graph/operators.h"

namespace ooc {
namespace {

std::vector<TensorId> roots_of(const Model& model) {
  std::vector<TensorId> roots;
  for (const BatchStatistics& statistics : model.batch_statistics) {
    if (statistics.sums >= 0) roots.push_back(statistics.sums);
  }
  for (const TensorId id : {model.embedding, model.logits, model.loss, model.zero_factors}) {
    if (id >= 0) roots.push_back(id);
  }
  roots.insert(roots.end(), model.layers.begin(), model.layers.end());
  return roots;
}

// Results are made by an operation, also where they are an input as it is.
void make_results(Model& model) {
  const auto make = [&](TensorId& id) {
    if (id >= 0 && model.graph.tensor(id).producer < 0) id = model.graph.apply("copy", {id});
  };
  make(model.embedding);
  make(model.logits);
  for (TensorId& layer : model.layers) make(layer);
}

}  // namespace

Model rewritten(Model model, Gradients& gradients, Rewritten graph) {
  Gradients rebuilt;
  for (const auto& [tensor, parts] : gradients) {
    const TensorId of = graph.at(tensor);
    for (const TensorId part : parts) {
      if (of >= 0 && graph.at(part) >= 0) rebuilt[of].push_back(graph.at(part));
    }
  }
  gradients = std::move(rebuilt);
  for (ModelParameter& parameter : model.parameters) parameter.tensor = graph.at(parameter.tensor);
  for (BatchStatistics& statistics : model.batch_statistics) {
    statistics.sums = graph.at(statistics.sums);
  }
  for (TensorId* id : {&model.embedding, &model.logits, &model.loss, &model.zero_factors,
                       &model.evaluated.logits, &model.evaluated.loss}) {
    *id = graph.at(*id);
  }
  for (TensorId& layer : model.layers) layer = graph.at(layer);
  model.graph = std::move(graph.graph);
  return model;
}

Model rewrite_model(Model model, const Rewrites& rewrites, Precomputed& precomputed,
                    const RewriteObserver& observer) {
  Gradients none;
  const auto apply = [&](Rewritten graph) {
    model = rewritten(std::move(model), none, std::move(graph));
  };
  const auto did = [&](const char* name) {
    if (observer) observer(name, model);
  };
  if (rewrites.motion) {
    apply(move_operators(model.graph));
    did("motion");
  }
  if (rewrites.common) {
    apply(merge_common(model.graph));
    did("common");
  }
  if (rewrites.order) {
    apply(order_matmuls(model.graph, roots_of(model), rewrites.hoisting));
    if (rewrites.common) apply(merge_common(model.graph));
    did("order");
  }
  precomputed.graph = std::make_shared<const TensorGraph>(model.graph);
  precomputed.zero_factors = model.zero_factors;
  if (rewrites.hoisting) {
    model.zero_factors = -1;
    apply(hoist_constants(model.graph, precomputed.tensors));
    did("hoisting");
  }
  if (rewrites.dead) {
    apply(drop_dead(model.graph, roots_of(model)));
    did("dead");
  }
  make_results(model);
  return model;
}

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

Model gather_sparse_rows(Model model, Gradients& gradients, const Rewrites& rewrites) {
  std::vector<TensorId> roots = roots_of(model);
  if (!rewrites.dead) {
    const std::vector<TensorId> unread = unread_results(model.graph);
    roots.insert(roots.end(), unread.begin(), unread.end());
  }
  for (const ModelParameter& parameter : model.parameters) {
    const auto parts = gradients.find(parameter.tensor);
    if (parts != gradients.end()) {
      roots.insert(roots.end(), parts->second.begin(), parts->second.end());
    }
  }
  Rewritten graph = gather_sparse_rows(model.graph, roots);
  return rewritten(std::move(model), gradients, std::move(graph));
}

namespace {

// A tensor from outside, by its name; added where it is missing.
TensorId leaf_like(TensorGraph& graph, const Tensor& leaf) {
  const auto same = [&](const Tensor& tensor) {
    return tensor.producer < 0 && tensor.name == leaf.name &&
           tensor.shape.space == leaf.shape.space && tensor.shape.loops == leaf.shape.loops &&
           tensor.shape.dtype == leaf.shape.dtype && tensor.shape.level == leaf.shape.level;
  };
  const std::vector<Tensor>& tensors = graph.tensors();
  const auto found = std::find_if(tensors.begin(), tensors.end(), same);
  return found == tensors.end() ? graph.add_like(leaf)
                                : static_cast<TensorId>(found - tensors.begin());
}

}  // namespace

Model with_evaluation(Model training, const Model& evaluation) {
  const TensorGraph& from = evaluation.graph;
  std::vector<TensorId> at(from.tensors().size(), -1);
  for (std::size_t id = 0; id < at.size(); ++id) {
    const Tensor& tensor = from.tensors()[id];
    if (tensor.producer < 0) at[id] = leaf_like(training.graph, tensor);
  }
  const auto here = [&](TensorId id) -> TensorId& { return at[static_cast<std::size_t>(id)]; };
  for (const Operation& operation : from.operations()) {
    std::vector<TensorId> inputs;
    for (const TensorId input : operation.inputs) inputs.push_back(here(input));
    const Operation& made = training.graph.add_like(
        operation, std::move(inputs), "evaluated " + from.tensor(operation.output).name);
    here(operation.output) = made.output;
    for (std::size_t i = 0; i < made.states.size(); ++i) {
      here(operation.states[i]) = made.states[i];
    }
  }
  training.evaluated = {here(evaluation.logits), here(evaluation.loss)};
  return training;
}

bool multiplies_on_edges(const TensorGraph& graph) {
  return std::any_of(graph.operations().begin(), graph.operations().end(),
                     [&](const Operation& operation) {
                       return operation.def->name == "matmul" &&
                              graph.shape(operation.output).space == Space::kEdge;
                     });
}

}  // namespace ooc
