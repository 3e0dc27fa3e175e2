// Models on batches: a sampled subgraph with levels of vertices (sched/plan/program.h), of which
// each layer computes the rows that later ones read (AGL's pruning, PyG's trim_to_layer).
#pragma once

#include <vector>

#include "engine/model/rewrites.h"

namespace ooc {

// Gives every tensor that `roots`, at level 0, depend on the highest level that an operation needs
// of it (TensorShape::level); operations that need fewer rows read the first ones. Others go.
Rewritten give_levels(const TensorGraph& graph, const std::vector<TensorId>& roots);

struct BatchModel {
  Model model;
  // Gathers on the longest way from an input to the logits: rows of up to this level are read.
  int hops = 0;
  // What it reads besides the dataset and kSampleScaleInput: sums of what all edges carry, of the
  // whole graph. A batch has the rows of its vertices.
  Precomputed precomputed;
};

// The model, rewritten without hoisting, before gradients, on batches: its loss and logits are of
// the seeds. Sums over in-edges are scaled (engine/sampling/sampled_sums.h). The embedding and the
// layers have the level that the loss needs; layers that it doesn't need are left out.
BatchModel batch_model(Model model);

}  // namespace ooc
