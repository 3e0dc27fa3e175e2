#include "engine/graph/operators.h"

#include <map>
#include <utility>

#include "engine/graph/edge_operators.h"
#include "engine/graph/gradients.h"
#include "engine/graph/loss_operators.h"
#include "engine/graph/row_operators.h"
#include "kernels/spec/random.h"
#include "kernels/spec/row_kernels.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

TensorShape like_first(const TensorGraph& graph, const Operation& operation) {
  return graph.shape(operation.inputs[0]);
}

// One row for all vertices, as wide as the first input.
TensorShape column_reduction(const TensorGraph& graph, const Operation& operation) {
  return {Space::kReduction, 1, graph.shape(operation.inputs[0]).cols, graph.real()};
}

TensorShape matmul_shape(const TensorGraph& graph, const Operation& operation) {
  const TensorShape& x = graph.shape(operation.inputs[0]);
  const TensorShape& w = graph.shape(operation.inputs[1]);
  const bool transpose = operation.attributes.transpose;
  OOC_CHECK(x.cols == (transpose ? w.cols : w.rows));
  return {Space::kVertex, 0, transpose ? w.rows : w.cols, graph.real()};
}

void matmul_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  Attributes attributes = op.attributes;
  attributes.transpose = !attributes.transpose;
  if (builder.wants(op.inputs[0])) {
    builder.add(op.inputs[0], builder.graph().apply("matmul", {dy, op.inputs[1]}, attributes));
  }
  if (!builder.wants(op.inputs[1])) return;
  // W = d/dW of X W is X^T dY; of X W^T it is dY^T X.
  std::vector<TensorId> operands{op.inputs[0], dy};
  if (op.attributes.transpose) std::swap(operands[0], operands[1]);
  builder.add(op.inputs[1], builder.graph().apply("matmul_reduce", operands));
}

TensorShape matmul_reduce_shape(const TensorGraph& graph, const Operation& operation) {
  return {Space::kReduction, graph.shape(operation.inputs[0]).cols,
          graph.shape(operation.inputs[1]).cols, graph.real()};
}

TensorShape bias_shape(const TensorGraph& graph, const Operation& operation) {
  OOC_CHECK(graph.shape(operation.inputs[0]).cols == graph.shape(operation.inputs[1]).cols);
  return graph.shape(operation.inputs[0]);
}

void bias_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  builder.add(op.inputs[0], dy);
  builder.add(op.inputs[1], builder.graph().apply("column_sum", {dy}));
}

TensorShape add_shape(const TensorGraph& graph, const Operation& operation) {
  OOC_CHECK(graph.shape(operation.inputs[0]).cols == graph.shape(operation.inputs[1]).cols);
  return graph.shape(operation.inputs[0]);
}

void add_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  builder.add(op.inputs[0], dy);
  builder.add(op.inputs[1], dy);
}

// The dropout of y that `backward`, which made the gradient of y, belongs to; null: none. No other
// gradient flows into y then.
const Operation* dropout_of(const TensorGraph& graph, TensorId y, const Operation& backward) {
  for (const Operation& forward : graph.operations()) {
    const bool same = forward.def == backward.def && forward.inputs[0] == y &&
                      forward.inputs[1] == backward.inputs[1] &&
                      forward.attributes.key == backward.attributes.key &&
                      forward.attributes.value == backward.attributes.value;
    if (same) return &forward;
  }
  return nullptr;
}

TensorShape words_shape(const TensorGraph& graph, const Operation& op) {
  const std::int64_t cols = graph.shape(op.inputs[0]).cols;
  return {Space::kVertex, 0, ceil_div(cols, kBitsPerWord), DType::kI32};
}

// Of y the signs are needed alone, kept as bits. What a dropout leaves of y is positive where both
// let a value pass: where no other gradient flows into y, that says it without the random numbers.
void relu_gradient(GradientBuilder& builder, const Operation& op) {
  TensorGraph& graph = builder.graph();
  TensorId dy = builder.output_gradient(op), positive = op.output;
  const int producer = graph.tensor(dy).producer;
  if (producer >= 0) {
    const Operation backward = graph.operations()[static_cast<std::size_t>(producer)];
    const bool drops = backward.def->name == "dropout";
    const Operation* forward = drops ? dropout_of(graph, op.output, backward) : nullptr;
    if (forward != nullptr) {
      positive = forward->output;
      const double scale = dropout_scale(backward.attributes.value);
      dy = graph.apply("affine", {backward.inputs[0]}, {.value = scale});
    }
  }
  if (graph.shape(op.output).space == Space::kEdge) {  // nothing is kept of edges
    builder.add(op.inputs[0], graph.apply("relu_gradient", {dy, positive}));
    return;
  }
  const TensorId bits = graph.apply("positive_bits", {positive});
  builder.add(op.inputs[0], graph.apply("keep_bits", {dy, bits}));
}

// Linear in the first input, and its own adjoint.
void dropout_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  builder.add(op.inputs[0], builder.graph().apply("dropout", {dy, op.inputs[1]}, op.attributes));
}

void layer_norm_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  const TensorId x = op.inputs[0], gamma = op.inputs[1], beta = op.inputs[2];
  TensorGraph& graph = builder.graph();
  builder.add(gamma, graph.apply("layer_norm_gamma_gradient", {dy, x}, op.attributes));
  builder.add(beta, graph.apply("column_sum", {dy}));
  if (builder.wants(x)) {
    builder.add(x, graph.apply("layer_norm_gradient", {dy, x, gamma}, op.attributes));
  }
}

TensorShape batch_norm_sums_shape(const TensorGraph& graph, const Operation& operation) {
  return {Space::kReduction, 2, graph.shape(operation.inputs[0]).cols, DType::kF64};
}

// The gradient through the statistics is part of it: `sums` itself passes nothing back.
void batch_norm_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  const TensorId x = op.inputs[0], sums = op.inputs[1], gamma = op.inputs[2], beta = op.inputs[3];
  TensorGraph& graph = builder.graph();
  const TensorId dgamma = graph.apply("batch_norm_gamma_gradient", {dy, x, sums}, op.attributes);
  const TensorId dbeta = graph.apply("column_sum", {dy});
  builder.add(gamma, dgamma);
  builder.add(beta, dbeta);
  if (builder.wants(x)) {
    builder.add(
        x, graph.apply("batch_norm_gradient", {dy, x, sums, gamma, dgamma, dbeta}, op.attributes));
  }
}

// Shares of elements that aren't zero (OperatorDef::density). Operands count as independent, and
// either sign as as likely.
using Shares = std::vector<double>;

double first_share(const Attributes& attributes, const Shares& operands) {
  return attributes.shift == 0 ? operands[0] : 1;
}

double half_of_first(const Attributes&, const Shares& operands) { return operands[0] / 2; }

double share_left(const Attributes& attributes, const Shares& operands) {
  return (1 - attributes.value) * operands[0];
}

double share_of_both(const Attributes&, const Shares& operands) {
  return operands[0] * operands[1];
}

double share_of_either(const Attributes&, const Shares& operands) {
  return 1 - (1 - operands[0]) * (1 - operands[1]);
}

using Table = std::map<std::string, OperatorDef, std::less<>>;

Table built_in_operators() {
  constexpr auto kRowWise = Dependence::kRowWise;
  constexpr auto kReduction = Dependence::kReduction;
  using Z = ZeroRows;
  constexpr auto kLocal = FeatureDependence::kSliceLocal;
  constexpr auto kFull = FeatureDependence::kFullWidth;
  const OperatorDef entries[] = {
      // name, dependence, features, recompute, zero rows, shape, gradient
      {"matmul", kRowWise, kFull, false, Z::kFirst, matmul_shape, matmul_gradient},
      {"matmul_reduce", kReduction, kFull, false, Z::kNone, matmul_reduce_shape, nullptr},
      {"bias", kRowWise, kLocal, true, Z::kNone, bias_shape, bias_gradient},
      {"column_sum", kReduction, kLocal, false, Z::kNone, column_reduction, nullptr},
      {"add", kRowWise, kLocal, true, Z::kAll, add_shape, add_gradient, nullptr, 2},
      {"relu", kRowWise, kLocal, true, Z::kFirst, like_first, relu_gradient},
      {"relu_gradient", kRowWise, kLocal, true, Z::kFirst, like_first, nullptr},
      {"positive_bits", kRowWise, kFull, false, Z::kFirst, words_shape, nullptr},
      {"keep_bits", kRowWise, kFull, true, Z::kFirst, like_first, nullptr},
      {"dropout", kRowWise, kLocal, true, Z::kFirst, like_first, dropout_gradient},
      {"layer_norm", kRowWise, kFull, false, Z::kNone, like_first, layer_norm_gradient},
      {"layer_norm_gradient", kRowWise, kFull, false, Z::kFirst, like_first, nullptr},
      {"layer_norm_gamma_gradient", kReduction, kFull, false, Z::kNone, column_reduction, nullptr},
      {"batch_norm_sums", kReduction, kLocal, false, Z::kNone, batch_norm_sums_shape, nullptr},
      {"batch_norm", kRowWise, kLocal, true, Z::kNone, like_first, batch_norm_gradient},
      {"batch_norm_gamma_gradient", kReduction, kLocal, false, Z::kNone, column_reduction, nullptr},
      {"batch_norm_gradient", kRowWise, kLocal, false, Z::kNone, like_first, nullptr},
      {"batch_norm_inference", kRowWise, kLocal, true, Z::kNone, like_first, nullptr},
  };
  Table table;
  for (const OperatorDef& entry : entries) table.emplace(entry.name, entry);
  for (const OperatorDef& entry : edge_operators()) table.emplace(entry.name, entry);
  for (const OperatorDef& entry : row_operators()) table.emplace(entry.name, entry);
  for (const OperatorDef& entry : loss_operators()) table.emplace(entry.name, entry);
  const std::pair<const char*, decltype(OperatorDef::density)> densities[] = {
      {"relu", half_of_first},      {"positive_bits", first_share},   {"dropout", share_left},
      {"keep_bits", share_of_both}, {"relu_gradient", share_of_both}, {"mul", share_of_both},
      {"add", share_of_either},     {"sub", share_of_either},         {"copy", first_share},
      {"affine", first_share},      {"scale_by", first_share},        {"scale_rows", first_share},
      {"columns", first_share},     {"scale_cols", first_share},      {"first_rows", first_share},
      {"extend_rows", first_share},
  };
  for (const auto& [name, density] : densities) table.at(name).density = density;
  return table;
}

Table& table() {
  static Table operators = built_in_operators();
  return operators;
}

}  // namespace

void register_operator(OperatorDef def) {
  std::string name = def.name;
  OOC_CHECK(table().emplace(std::move(name), std::move(def)).second);
}

const OperatorDef& find_operator(std::string_view name) {
  const auto found = table().find(name);
  OOC_CHECK(found != table().end());
  return found->second;
}

}  // namespace ooc
