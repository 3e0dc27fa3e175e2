// A model rewritten (engine/rewrites.h), step by step, and what it wants computed once a run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/model.h"
#include "engine/rewrites.h"

namespace ooc {

// What a rewritten model reads besides the dataset: vertex tensors to be computed before its first
// epoch.
struct Precomputed {
  std::shared_ptr<const TensorGraph> graph;  // that computes them
  std::vector<Hoisted> tensors;              // of `graph`
};

// The model over a graph rebuilt from its own.
Model rewritten(Model model, Rewritten graph);

// Called with the name of a rewrite, and the model behind it.
using RewriteObserver = std::function<void(const std::string& name, const Model& model)>;

// Parameters, statistics, embedding, logits and loss of the result are those of the model.
Model rewrite_model(Model model, const Rewrites& rewrites, Precomputed& precomputed,
                    const RewriteObserver& observer = nullptr);

}  // namespace ooc
