#include "engine/graph/tensor_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/graph/operators.h"
#include "storage/base/errors.h"

namespace ooc {

TensorId TensorGraph::add_tensor(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors_.size()) - 1;
}

TensorId TensorGraph::add_input(const std::string& name, const TensorShape& shape,
                                bool needs_gradient) {
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    const TensorShape& there = tensors_[id].shape;
    if (tensors_[id].name != name || tensors_[id].producer >= 0) continue;
    if (there.loops != shape.loops) continue;
    // What edges carry is decoded as it is asked for.
    if (shape.space == Space::kEdge && there.dtype != shape.dtype) continue;
    if (shape.space == Space::kEdge && there.level != shape.level) continue;
    OOC_CHECK(there.space == shape.space && there.cols == shape.cols && there.dtype == shape.dtype);
    return static_cast<TensorId>(id);
  }
  return add_tensor({name, shape, -1, needs_gradient});
}

bool TensorGraph::has_input(const std::string& name) const {
  return std::any_of(tensors_.begin(), tensors_.end(), [&](const Tensor& tensor) {
    return tensor.producer < 0 && tensor.name == name;
  });
}

TensorId TensorGraph::input(const std::string& name, std::int64_t cols, DType dtype,
                            bool needs_gradient) {
  return add_input(name, {Space::kVertex, 0, cols, dtype}, needs_gradient);
}

TensorId TensorGraph::edge_input(const std::string& name, std::int64_t cols, DType dtype,
                                 bool loops) {
  return add_input(name, {Space::kEdge, 0, cols, dtype, loops}, false);
}

TensorId TensorGraph::parameter(const std::string& name, std::int64_t rows, std::int64_t cols,
                                bool trainable) {
  return add_tensor({name, {Space::kParameter, rows, cols, real_}, -1, trainable});
}

namespace {

// Of the operands that have rows: all are at vertices or all at edges, and of one level. Null: none
// has.
const TensorShape* rows_of_operands(const TensorGraph& graph, const Operation& operation) {
  const TensorShape* rows = nullptr;
  for (const TensorId input : operation.inputs) {
    const TensorShape& operand = graph.shape(input);
    if (!has_rows(operand.space)) continue;
    OOC_CHECK(rows == nullptr || (rows->space == operand.space && rows->loops == operand.loops));
    OOC_CHECK(rows == nullptr || rows->level == operand.level);
    rows = &operand;
  }
  return rows;
}

// The level of what an operation makes of rows of level `rows`.
int level_of(const Operation& operation, int rows) {
  if (operation.def->dependence == Dependence::kReduction) return kAllRows;
  if (operation.level != kAllRows) return operation.level;
  if (rows == kAllRows) return kAllRows;
  if (operation.def->name == "source") {
    OOC_CHECK(rows > 0);
    return rows - 1;
  }
  const bool to_sources = operation.def->dependence == Dependence::kAlongEdges &&
                          operation.direction == Direction::kOut;
  return to_sources ? rows + 1 : rows;
}

// Row-wise operators give rows where their operands have them.
void place_rows(const Operation& operation, const TensorShape& rows, TensorShape& shape) {
  shape.level = level_of(operation, rows.level);
  if (operation.def->dependence != Dependence::kRowWise || !has_rows(shape.space)) return;
  shape.space = rows.space;
  shape.loops = rows.loops;
}

}  // namespace

TensorId TensorGraph::add_operation(Operation operation, const std::string& name) {
  const OperatorDef& def = *operation.def;
  Tensor output;
  output.shape = def.shape(*this, operation);
  if (const TensorShape* rows = rows_of_operands(*this, operation)) {
    place_rows(operation, *rows, output.shape);
  }
  const int level = output.shape.level;
  output.producer = static_cast<int>(operations_.size());
  output.name = name.empty() ? fmt::format("{}.{}", def.name, tensors_.size()) : name;
  output.needs_gradient = def.gradient != nullptr &&
                          std::any_of(operation.inputs.begin(), operation.inputs.end(),
                                      [&](TensorId id) { return tensor(id).needs_gradient; });
  const int producer = output.producer;
  const std::string output_name = output.name;
  operation.output = add_tensor(std::move(output));
  if (def.states != nullptr) {
    for (auto [state, shape] : def.states(*this, operation)) {
      shape.level = level;
      operation.states.push_back(add_tensor({output_name + state, shape, producer, false}));
    }
  }
  operations_.push_back(std::move(operation));
  return operations_.back().output;
}

TensorId TensorGraph::apply(std::string_view op, std::vector<TensorId> inputs,
                            const Attributes& attributes, const std::string& name) {
  return add_operation({&find_operator(op), std::move(inputs), -1, attributes}, name);
}

TensorId TensorGraph::to_edges(std::string_view end, TensorId x, bool loops) {
  const bool from_outside = tensor(x).producer < 0;
  if (from_outside) x = apply(shape(x).dtype == DType::kI64 ? "copy_ids" : "copy", {x});
  return add_operation({&find_operator(end), {x}, -1, {}, Direction::kIn, {}, loops}, "");
}

TensorId TensorGraph::to_level(std::string_view op, TensorId x, int level) {
  const int from = shape(x).level;
  OOC_CHECK(from != kAllRows && level >= 0);
  OOC_CHECK(op == "first_rows" ? level < from : level > from);
  Operation operation{&find_operator(op), {x}};
  operation.level = level;
  return add_operation(std::move(operation), "");
}

TensorId TensorGraph::gather(std::string_view fold, std::vector<TensorId> inputs,
                             Direction direction, const std::string& name) {
  const OperatorDef& def = find_operator(fmt::format("gather_{}", fold));
  return add_operation({&def, std::move(inputs), -1, {}, direction}, name);
}

TensorId TensorGraph::add_like(const Tensor& leaf) {
  OOC_CHECK(leaf.producer < 0);
  return add_tensor(leaf);
}

const Operation& TensorGraph::add_like(const Operation& operation, std::vector<TensorId> inputs,
                                       const std::string& name) {
  add_operation({operation.def,
                 std::move(inputs),
                 -1,
                 operation.attributes,
                 operation.direction,
                 {},
                 operation.loops,
                 operation.level},
                name);
  return operations_.back();
}

int rows_level(const TensorGraph& graph, const Operation& operation) {
  const TensorShape& made = graph.shape(operation.output);
  if (has_rows(made.space)) return made.level;
  const TensorShape* rows = rows_of_operands(graph, operation);
  return rows == nullptr ? kAllRows : rows->level;
}

std::vector<const Operation*> live_operations(const TensorGraph& graph,
                                              const std::vector<TensorId>& roots) {
  std::set<TensorId> wanted(roots.begin(), roots.end());
  std::vector<const Operation*> live;
  for (auto it = graph.operations().rbegin(); it != graph.operations().rend(); ++it) {
    const bool state = std::any_of(it->states.begin(), it->states.end(),
                                   [&](TensorId id) { return wanted.contains(id); });
    if (!state && !wanted.contains(it->output)) continue;
    live.push_back(&*it);
    wanted.insert(it->inputs.begin(), it->inputs.end());
  }
  std::reverse(live.begin(), live.end());
  return live;
}

}  // namespace ooc
