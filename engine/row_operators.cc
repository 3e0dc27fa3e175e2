#include "engine/row_operators.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/gradients.h"
#include "storage/errors.h"

namespace ooc {
namespace {

std::int64_t cols_of(const TensorGraph& graph, const Operation& op, std::size_t input) {
  return graph.shape(op.inputs[input]).cols;
}

TensorShape rows_of_width(const TensorGraph& graph, std::int64_t cols) {
  return {Space::kVertex, 0, cols, graph.real()};
}

TensorShape like_first(const TensorGraph& graph, const Operation& op) {
  return rows_of_width(graph, cols_of(graph, op, 0));
}

// Every operand is as wide as the first.
TensorShape equal_widths(const TensorGraph& graph, const Operation& op) {
  for (std::size_t i = 1; i < op.inputs.size(); ++i) {
    OOC_CHECK(cols_of(graph, op, i) == cols_of(graph, op, 0));
  }
  return like_first(graph, op);
}

// Adds a contribution to the gradient of an input, where it wants one.
void flow(GradientBuilder& builder, const Operation& op, std::size_t input, const char* name,
          std::vector<TensorId> operands, const Attributes& attributes = {}) {
  if (!builder.wants(op.inputs[input])) return;
  builder.add(op.inputs[input], builder.graph().apply(name, std::move(operands), attributes));
}

// Element-wise.

void sub_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  builder.add(op.inputs[0], dy);
  flow(builder, op, 1, "affine", {dy}, {.value = -1});
}

void mul_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  flow(builder, op, 0, "mul", {dy, op.inputs[1]});
  flow(builder, op, 1, "mul", {dy, op.inputs[0]});
}

void affine_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  flow(builder, op, 0, "affine", {dy}, {.value = op.attributes.value});
}

void maximum_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  if (!builder.wants(op.inputs[0]) && !builder.wants(op.inputs[1])) return;
  TensorGraph& graph = builder.graph();
  const TensorId da = graph.apply("maximum_gradient", {dy, op.inputs[0], op.inputs[1]});
  builder.add(op.inputs[0], da);
  flow(builder, op, 1, "sub", {dy, da});
}

// The operator "<name>_gradient" of the output's gradient and the output.
void gradient_of_output(GradientBuilder& builder, const Operation& op) {
  const std::string name = op.def->name + "_gradient";
  flow(builder, op, 0, name.c_str(), {builder.output_gradient(op), op.output}, op.attributes);
}

void gelu_gradient(GradientBuilder& builder, const Operation& op) {
  flow(builder, op, 0, "gelu_gradient", {builder.output_gradient(op), op.inputs[0]});
}

void exp_gradient(GradientBuilder& builder, const Operation& op) {
  flow(builder, op, 0, "mul", {builder.output_gradient(op), op.output});
}

// Factors of columns, and of everything.

TensorShape column_reduction(const TensorGraph& graph, const Operation& op) {
  return {Space::kReduction, 1, equal_widths(graph, op).cols, graph.real()};
}

void scale_cols_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  flow(builder, op, 0, "scale_cols", {dy, op.inputs[1]});
  flow(builder, op, 1, "mul_column_sum", {dy, op.inputs[0]});
}

TensorShape scale_by_shape(const TensorGraph& graph, const Operation& op) {
  OOC_CHECK(graph.shape(op.inputs[1]).rows == 1 && cols_of(graph, op, 1) == 1);
  return like_first(graph, op);
}

void scale_by_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  flow(builder, op, 0, "scale_by", {dy, op.inputs[1]});
  flow(builder, op, 1, "dot_sum", {dy, op.inputs[0]});
}

TensorShape scalar_reduction(const TensorGraph& graph, const Operation& op) {
  equal_widths(graph, op);
  return {Space::kReduction, 1, 1, graph.real()};
}

}  // namespace

std::span<const OperatorDef> row_operators() {
  constexpr auto kRowWise = Dependence::kRowWise;
  constexpr auto kReduction = Dependence::kReduction;
  constexpr auto kLocal = FeatureDependence::kSliceLocal;
  constexpr auto kFull = FeatureDependence::kFullWidth;
  static const OperatorDef kEntries[] = {
      // name, dependence, features, recompute, shape, gradient
      {"sub", kRowWise, kLocal, true, equal_widths, sub_gradient},
      {"mul", kRowWise, kLocal, true, equal_widths, mul_gradient},
      {"affine", kRowWise, kLocal, true, like_first, affine_gradient},
      {"maximum", kRowWise, kLocal, true, equal_widths, maximum_gradient},
      {"maximum_gradient", kRowWise, kLocal, true, equal_widths, nullptr},
      {"sigmoid", kRowWise, kLocal, true, like_first, gradient_of_output},
      {"sigmoid_gradient", kRowWise, kLocal, true, equal_widths, nullptr},
      {"tanh", kRowWise, kLocal, true, like_first, gradient_of_output},
      {"tanh_gradient", kRowWise, kLocal, true, equal_widths, nullptr},
      {"leaky_relu", kRowWise, kLocal, true, like_first, gradient_of_output},
      {"leaky_relu_gradient", kRowWise, kLocal, true, equal_widths, nullptr},
      {"elu", kRowWise, kLocal, true, like_first, gradient_of_output},
      {"elu_gradient", kRowWise, kLocal, true, equal_widths, nullptr},
      {"gelu", kRowWise, kLocal, true, like_first, gelu_gradient},
      {"gelu_gradient", kRowWise, kLocal, true, equal_widths, nullptr},
      {"exp", kRowWise, kLocal, true, like_first, exp_gradient},
      {"scale_cols", kRowWise, kLocal, true, equal_widths, scale_cols_gradient},
      {"mul_column_sum", kReduction, kLocal, false, column_reduction, nullptr},
      {"scale_by", kRowWise, kLocal, true, scale_by_shape, scale_by_gradient},
      {"dot_sum", kReduction, kFull, false, scalar_reduction, nullptr},
  };
  return kEntries;
}

}  // namespace ooc
