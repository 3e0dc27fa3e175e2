#include "engine/rewrite/graph_rebuilder.h"

#include <algorithm>

namespace ooc {

GraphRebuilder::GraphRebuilder(const TensorGraph& old)
    : old_(old), out_{TensorGraph(old.real()), std::vector<TensorId>(old.tensors().size(), -1)} {
  for (std::size_t id = 0; id < old.tensors().size(); ++id) {
    const Tensor& tensor = old.tensors()[id];
    if (tensor.producer < 0) out_.tensors[id] = out_.graph.add_like(tensor);
  }
}

void GraphRebuilder::copy(const Operation& old_operation) {
  std::vector<TensorId> inputs;
  for (const TensorId input : old_operation.inputs) inputs.push_back(at(input));
  const Operation& made =
      out_.graph.add_like(old_operation, std::move(inputs), old_.tensor(old_operation.output).name);
  set(old_operation.output, made.output);
  for (std::size_t i = 0; i < made.states.size(); ++i) {
    set(old_operation.states[i], made.states[i]);
  }
}

TensorId GraphRebuilder::add(const Operation& like, std::vector<TensorId> inputs,
                             const std::string& name) {
  if (like.def->dependence == Dependence::kToEdges) {
    return like.def->name == "source" ? out_.graph.source(inputs[0], like.loops)
                                      : out_.graph.destination(inputs[0], like.loops);
  }
  return out_.graph.add_like(like, std::move(inputs), name).output;
}

TensorId GraphRebuilder::uncopied(TensorId id) const {
  const int producer = out_.graph.tensor(id).producer;
  if (producer < 0) return id;
  const Operation& operation = out_.graph.operations()[static_cast<std::size_t>(producer)];
  const bool is_copy = operation.def->name == "copy" || operation.def->name == "copy_ids";
  return is_copy ? operation.inputs[0] : id;
}

Constants::Constants(const TensorGraph& graph, Hoist hoist)
    : constant_(graph.tensors().size()), propagated_(graph.tensors().size()) {
  for (std::size_t id = 0; id < constant_.size(); ++id) {
    const Tensor& tensor = graph.tensors()[id];
    const bool counts =
        hoist == Hoist::kAll ? has_rows(tensor.shape.space) : tensor.shape.space == Space::kEdge;
    constant_[id] = tensor.producer < 0 && counts && !tensor.needs_gradient;
  }
  for (const Operation& operation : graph.operations()) {
    const bool is_random = operation.attributes.key != 0;
    const auto& inputs = operation.inputs;
    const bool counts = hoist == Hoist::kAll || operation.def->dependence != Dependence::kToEdges;
    const bool constant =
        !is_random && counts &&
        std::all_of(inputs.begin(), inputs.end(), [&](TensorId id) { return contains(id); });
    const bool gathers = operation.def->dependence == Dependence::kAlongEdges;
    const bool has_gathered = gathers || std::any_of(inputs.begin(), inputs.end(),
                                                     [&](TensorId id) { return propagated(id); });
    std::vector<TensorId> outputs = operation.states;
    outputs.push_back(operation.output);
    for (const TensorId output : outputs) {
      constant_[static_cast<std::size_t>(output)] = constant;
      propagated_[static_cast<std::size_t>(output)] = constant && has_gathered;
    }
  }
}

}  // namespace ooc
