// A model rewritten (engine/rewrite/rewrites.h), step by step, and what it wants computed once a
// run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/graph/gradients.h"
#include "engine/model/parts/model.h"
#include "engine/rewrite/rewrites.h"

namespace ooc {

// What a rewritten model reads besides the dataset: vertex tensors to be computed before its first
// epoch.
struct Precomputed {
  std::shared_ptr<const TensorGraph> graph;  // that computes them
  std::vector<Hoisted> tensors;              // of `graph`
  TensorId zero_factors = -1;                // Model's, of `graph`
};

// The model, and of its gradients those that are left, over a graph rebuilt from its own.
Model rewritten(Model model, Gradients& gradients, Rewritten graph);

// Called with the name of a rewrite, and the model after it.
using RewriteObserver = std::function<void(const std::string& name, const Model& model)>;

// Parameters, statistics, embedding, logits and loss of the result are those of the model.
Model rewrite_model(Model model, const Rewrites& rewrites, Precomputed& precomputed,
                    const RewriteObserver& observer = nullptr);

// What operations make and no other reads, edges' values left out.
std::vector<TensorId> unread_results(const TensorGraph& graph);
// gather_sparse_rows(), after gradients, if there are any.
Model gather_sparse_rows(Model model, Gradients& gradients, const Rewrites& rewrites);

// A model that is trained, whose graph evaluates the same parameters after what it did before:
// `evaluated`. Equal operators aren't merged yet.
Model with_evaluation(Model training, const Model& evaluation);
// Whether rows of edges are multiplied by a matrix. Such a product takes the edges of a batch
// together, so its bits depend on what else its propagation does.
bool multiplies_on_edges(const TensorGraph& graph);

}  // namespace ooc
