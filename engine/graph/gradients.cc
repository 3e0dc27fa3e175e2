#include "engine/graph/gradients.h"

#include "storage/base/errors.h"

namespace ooc {

TensorId GradientBuilder::output_gradient(const Operation& operation) const {
  const auto found = gradients_.find(operation.output);
  OOC_CHECK(found != gradients_.end() && found->second.size() == 1);
  return found->second.front();
}

void GradientBuilder::add(TensorId input, TensorId gradient) {
  if (!wants(input)) return;
  std::vector<TensorId>& parts = gradients_[input];
  if (parts.empty() || graph_.shape(input).space == Space::kParameter) {
    parts.push_back(gradient);  // no operator adds reductions: who reads the gradient sums them
    return;
  }
  OOC_CHECK(graph_.shape(input).space != Space::kReduction);
  parts.front() = graph_.apply("add", {parts.front(), gradient});
}

Gradients add_gradients(TensorGraph& graph, GradientSeed seed) {
  GradientBuilder builder(graph);
  if (seed.gradient >= 0) builder.add(seed.tensor, seed.gradient);
  // The backward operations are appended after the forward ones, which alone are walked.
  for (int i = static_cast<int>(graph.operations().size()) - 1; i >= 0; --i) {
    const Operation operation = graph.operations()[static_cast<std::size_t>(i)];
    if (!graph.tensor(operation.output).needs_gradient) continue;
    const bool is_loss = seed.gradient < 0 && operation.output == seed.tensor;
    if (!is_loss && !builder.gradients().contains(operation.output)) continue;
    operation.def->gradient(builder, operation);
  }
  return builder.gradients();
}

}  // namespace ooc
