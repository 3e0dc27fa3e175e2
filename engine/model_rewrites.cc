#include "engine/model_rewrites.h"

#include <utility>

namespace ooc {
namespace {

std::vector<TensorId> roots_of(const Model& model) {
  std::vector<TensorId> roots;
  for (const BatchStatistics& statistics : model.batch_statistics) {
    if (statistics.sums >= 0) roots.push_back(statistics.sums);
  }
  for (const TensorId id : {model.embedding, model.logits, model.loss}) {
    if (id >= 0) roots.push_back(id);
  }
  return roots;
}

// Results are made by an operation, also where they are an input as it is.
void make_results(Model& model) {
  for (TensorId* id : {&model.embedding, &model.logits}) {
    if (*id >= 0 && model.graph.tensor(*id).producer < 0) *id = model.graph.apply("copy", {*id});
  }
}

}  // namespace

Model rewritten(Model model, Rewritten graph) {
  for (ModelParameter& parameter : model.parameters) parameter.tensor = graph.at(parameter.tensor);
  for (BatchStatistics& statistics : model.batch_statistics) {
    statistics.sums = graph.at(statistics.sums);
  }
  for (TensorId* id : {&model.embedding, &model.logits, &model.loss}) *id = graph.at(*id);
  model.graph = std::move(graph.graph);
  return model;
}

Model rewrite_model(Model model, const Rewrites& rewrites, Precomputed& precomputed,
                    const RewriteObserver& observer) {
  const auto apply = [&](Rewritten graph) {
    model = rewritten(std::move(model), std::move(graph));
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
  if (rewrites.hoisting) {
    precomputed.graph = std::make_shared<const TensorGraph>(model.graph);
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

}  // namespace ooc
