// Reverse mode over the tensor graph.
#pragma once

#include <map>
#include <vector>

#include "engine/graph/operators.h"
#include "engine/graph/tensor_graph.h"

namespace ooc {

// The gradient of a tensor is the sum of these, in this order. A parameter has a reduction for
// every operation that reads it; any other tensor has one entry.
using Gradients = std::map<TensorId, std::vector<TensorId>>;

// The gradients that flow back so far; operators' gradient rules write through it.
class GradientBuilder {
 public:
  explicit GradientBuilder(TensorGraph& graph) : graph_(graph) {}

  TensorGraph& graph() { return graph_; }
  // The gradient of an operation's output. A loss has none: its own is 1.
  TensorId output_gradient(const Operation& operation) const;
  bool wants(TensorId tensor) const { return graph_.tensor(tensor).needs_gradient; }
  // Adds to the gradient of an input; ignored where the input needs none.
  void add(TensorId input, TensorId gradient);

  const Gradients& gradients() const { return gradients_; }

 private:
  TensorGraph& graph_;
  Gradients gradients_;
};

// Where differentiation starts: a scalar loss, or a tensor together with its given gradient.
struct GradientSeed {
  TensorId tensor = -1;
  TensorId gradient = -1;  // -1: `tensor` is a loss
};

// Adds the backward operations; returns the gradient of every tensor that needs one and got one.
Gradients add_gradients(TensorGraph& graph, GradientSeed seed);

}  // namespace ooc
