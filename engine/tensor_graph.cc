#include "engine/tensor_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/operators.h"
#include "storage/errors.h"

namespace ooc {

TensorId TensorGraph::add_tensor(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors_.size()) - 1;
}

TensorId TensorGraph::input(const std::string& name, std::int64_t cols, DType dtype,
                            bool needs_gradient) {
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    if (tensors_[id].name != name || tensors_[id].producer >= 0) continue;
    OOC_CHECK(tensors_[id].shape.cols == cols && tensors_[id].shape.dtype == dtype);
    return static_cast<TensorId>(id);
  }
  return add_tensor({name, {Space::kVertex, 0, cols, dtype}, -1, needs_gradient});
}

TensorId TensorGraph::parameter(const std::string& name, std::int64_t rows, std::int64_t cols,
                                bool trainable) {
  return add_tensor({name, {Space::kParameter, rows, cols, real_}, -1, trainable});
}

TensorId TensorGraph::add_operation(Operation operation, const std::string& name) {
  const OperatorDef& def = *operation.def;
  Tensor output;
  output.shape = def.shape(*this, operation);
  output.producer = static_cast<int>(operations_.size());
  output.name = name.empty() ? fmt::format("{}.{}", def.name, tensors_.size()) : name;
  output.needs_gradient = def.gradient != nullptr &&
                          std::any_of(operation.inputs.begin(), operation.inputs.end(),
                                      [&](TensorId id) { return tensor(id).needs_gradient; });
  operation.output = add_tensor(std::move(output));
  operations_.push_back(std::move(operation));
  return operations_.back().output;
}

TensorId TensorGraph::apply(std::string_view op, std::vector<TensorId> inputs,
                            const Attributes& attributes, const std::string& name) {
  return add_operation({&find_operator(op), std::move(inputs), -1, attributes, Direction::kIn},
                       name);
}

TensorId TensorGraph::propagate(TensorId x, Direction direction, const std::string& name) {
  return add_operation({&find_operator("propagate"), {x}, -1, {}, direction}, name);
}

}  // namespace ooc
