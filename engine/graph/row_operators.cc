#include "engine/graph/row_operators.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/gradients.h"
#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"

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

// f is a vertex tensor: scale_rows and scale_heads, whose factors are one and several a row.
void scale_heads_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  const std::int64_t heads = cols_of(builder.graph(), op, 1);
  flow(builder, op, 0, op.def->name.c_str(), {dy, op.inputs[1]});
  flow(builder, op, 1, "head_dot", {dy, op.inputs[0]}, {.heads = heads});
}

TensorShape scale_rows_shape(const TensorGraph& graph, const Operation& op) {
  OOC_CHECK(cols_of(graph, op, 1) == 1);
  return like_first(graph, op);
}

// Heads.

TensorShape scale_heads_shape(const TensorGraph& graph, const Operation& op) {
  OOC_CHECK(cols_of(graph, op, 0) % cols_of(graph, op, 1) == 0);
  return like_first(graph, op);
}

TensorShape head_sums_shape(const TensorGraph& graph, const Operation& op) {
  const std::int64_t heads = op.attributes.heads;
  OOC_CHECK(heads >= 1 && equal_widths(graph, op).cols % heads == 0);
  return rows_of_width(graph, heads);
}

void head_dot_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  flow(builder, op, 0, "scale_heads", {op.inputs[1], dy});
  flow(builder, op, 1, "scale_heads", {op.inputs[0], dy});
}

void head_sum_gradient(GradientBuilder& builder, const Operation& op) {
  const std::int64_t cols = cols_of(builder.graph(), op, 0);
  flow(builder, op, 0, "head_broadcast", {builder.output_gradient(op)}, {.cols = cols});
}

TensorShape head_broadcast_shape(const TensorGraph& graph, const Operation& op) {
  const std::int64_t cols = op.attributes.cols;
  OOC_CHECK(cols >= 1 && cols % cols_of(graph, op, 0) == 0);
  return rows_of_width(graph, cols);
}

void head_broadcast_gradient(GradientBuilder& builder, const Operation& op) {
  const std::int64_t heads = cols_of(builder.graph(), op, 0);
  flow(builder, op, 0, "head_sum", {builder.output_gradient(op)}, {.heads = heads});
}

TensorShape heads_mean_shape(const TensorGraph& graph, const Operation& op) {
  const std::int64_t heads = op.attributes.heads;
  OOC_CHECK(heads >= 1 && cols_of(graph, op, 0) % heads == 0);
  return rows_of_width(graph, cols_of(graph, op, 0) / heads);
}

void heads_mean_gradient(GradientBuilder& builder, const Operation& op) {
  flow(builder, op, 0, "heads_spread", {builder.output_gradient(op)}, op.attributes);
}

TensorShape heads_spread_shape(const TensorGraph& graph, const Operation& op) {
  OOC_CHECK(op.attributes.heads >= 1);
  return rows_of_width(graph, cols_of(graph, op, 0) * op.attributes.heads);
}

void heads_spread_gradient(GradientBuilder& builder, const Operation& op) {
  flow(builder, op, 0, "heads_mean", {builder.output_gradient(op)}, op.attributes);
}

// Ranges of columns.

TensorShape concat_shape(const TensorGraph& graph, const Operation& op) {
  return rows_of_width(graph, cols_of(graph, op, 0) + cols_of(graph, op, 1));
}

void concat_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  const std::int64_t d = cols_of(builder.graph(), op, 0), e = cols_of(builder.graph(), op, 1);
  flow(builder, op, 0, "columns", {dy}, {.begin = 0, .cols = d});
  flow(builder, op, 1, "columns", {dy}, {.begin = d, .cols = e});
}

TensorShape columns_shape(const TensorGraph& graph, const Operation& op) {
  const Attributes& range = op.attributes;
  OOC_CHECK(range.begin >= 0 && range.cols >= 1);
  OOC_CHECK(range.begin + range.cols <= cols_of(graph, op, 0));
  return rows_of_width(graph, range.cols);
}

void columns_gradient(GradientBuilder& builder, const Operation& op) {
  const std::int64_t cols = cols_of(builder.graph(), op, 0);
  flow(builder, op, 0, "place_columns", {builder.output_gradient(op)},
       {.begin = op.attributes.begin, .cols = cols});
}

TensorShape place_columns_shape(const TensorGraph& graph, const Operation& op) {
  const Attributes& place = op.attributes;
  OOC_CHECK(place.begin >= 0 && place.begin + cols_of(graph, op, 0) <= place.cols);
  return rows_of_width(graph, place.cols);
}

void place_columns_gradient(GradientBuilder& builder, const Operation& op) {
  const std::int64_t cols = cols_of(builder.graph(), op, 0);
  flow(builder, op, 0, "columns", {builder.output_gradient(op)},
       {.begin = op.attributes.begin, .cols = cols});
}

TensorShape pick_type_shape(const TensorGraph& graph, const Operation& op) {
  const std::int64_t cols = op.attributes.cols;
  OOC_CHECK(cols >= 1 && cols_of(graph, op, 0) % cols == 0 && cols_of(graph, op, 1) == 1);
  return rows_of_width(graph, cols);
}

void pick_type_gradient(GradientBuilder& builder, const Operation& op) {
  const std::int64_t cols = cols_of(builder.graph(), op, 0);
  flow(builder, op, 0, "place_type", {builder.output_gradient(op), op.inputs[1]}, {.cols = cols});
}

TensorShape place_type_shape(const TensorGraph& graph, const Operation& op) {
  const std::int64_t cols = op.attributes.cols;
  OOC_CHECK(cols >= 1 && cols % cols_of(graph, op, 0) == 0 && cols_of(graph, op, 1) == 1);
  return rows_of_width(graph, cols);
}

void place_type_gradient(GradientBuilder& builder, const Operation& op) {
  const std::int64_t cols = cols_of(builder.graph(), op, 0);
  flow(builder, op, 0, "pick_type", {builder.output_gradient(op), op.inputs[1]}, {.cols = cols});
}

// Of a dataset's degrees and labels.

TensorShape degree_factor_shape(const TensorGraph& graph, const Operation& op) {
  OOC_CHECK(cols_of(graph, op, 0) == kDegreeColumns);
  return rows_of_width(graph, 1);
}

TensorShape binary_label_shape(const TensorGraph&, const Operation&) {
  return {Space::kVertex, 0, 1, DType::kU8};
}

// GRU cells. Operands Gx, Gh, H; of the gradients G, Gx, Gh and but for the last H.

TensorShape gru_shape(const TensorGraph& graph, const Operation& op) {
  const std::int64_t cols = cols_of(graph, op, 2);
  OOC_CHECK(cols_of(graph, op, 0) == 3 * cols && cols_of(graph, op, 1) == 3 * cols);
  return rows_of_width(graph, cols);
}

void gru_gradient(GradientBuilder& builder, const Operation& op) {
  const TensorId dy = builder.output_gradient(op);
  const TensorId gx = op.inputs[0], gh = op.inputs[1], h = op.inputs[2];
  flow(builder, op, 0, "gru_input_gradient", {dy, gx, gh, h});
  flow(builder, op, 1, "gru_hidden_gradient", {dy, gx, gh, h});
  flow(builder, op, 2, "gru_state_gradient", {dy, gx, gh});
}

TensorShape gate_gradient_shape(const TensorGraph& graph, const Operation& op) {
  return rows_of_width(graph, 3 * cols_of(graph, op, 0));
}

// Of edges.

TensorShape edge_dropout_shape(const TensorGraph& graph, const Operation& op) {
  OOC_CHECK(op.attributes.heads >= 1 && cols_of(graph, op, 0) % op.attributes.heads == 0);
  OOC_CHECK(cols_of(graph, op, 1) == 3);
  return like_first(graph, op);
}

void edge_dropout_gradient(GradientBuilder& builder, const Operation& op) {
  flow(builder, op, 0, "edge_dropout", {builder.output_gradient(op), op.inputs[1]}, op.attributes);
}

}  // namespace

std::span<const OperatorDef> row_operators() {
  constexpr auto kRowWise = Dependence::kRowWise;
  constexpr auto kReduction = Dependence::kReduction;
  using Z = ZeroRows;
  constexpr auto kLocal = FeatureDependence::kSliceLocal;
  constexpr auto kFull = FeatureDependence::kFullWidth;
  static const OperatorDef kEntries[] = {
      // name, dependence, features, recompute, zero rows, shape, gradient
      {"sub", kRowWise, kLocal, true, Z::kAll, equal_widths, sub_gradient, nullptr, 2},
      {"mul", kRowWise, kLocal, true, Z::kEither, equal_widths, mul_gradient},
      {"affine", kRowWise, kLocal, true, Z::kFirstUnshifted, like_first, affine_gradient, nullptr,
       1},
      {"maximum", kRowWise, kLocal, true, Z::kAll, equal_widths, maximum_gradient},
      {"maximum_gradient", kRowWise, kLocal, true, Z::kFirst, equal_widths, nullptr},
      {"sigmoid", kRowWise, kLocal, true, Z::kNone, like_first, gradient_of_output},
      {"sigmoid_gradient", kRowWise, kLocal, true, Z::kFirst, equal_widths, nullptr},
      {"tanh", kRowWise, kLocal, true, Z::kFirst, like_first, gradient_of_output},
      {"tanh_gradient", kRowWise, kLocal, true, Z::kFirst, equal_widths, nullptr},
      {"leaky_relu", kRowWise, kLocal, true, Z::kFirst, like_first, gradient_of_output},
      {"leaky_relu_gradient", kRowWise, kLocal, true, Z::kFirst, equal_widths, nullptr},
      {"elu", kRowWise, kLocal, true, Z::kFirst, like_first, gradient_of_output},
      {"elu_gradient", kRowWise, kLocal, true, Z::kFirst, equal_widths, nullptr},
      {"gelu", kRowWise, kLocal, true, Z::kFirst, like_first, gelu_gradient},
      {"gelu_gradient", kRowWise, kLocal, true, Z::kFirst, equal_widths, nullptr},
      {"exp", kRowWise, kLocal, true, Z::kNone, like_first, exp_gradient, nullptr, 0, Fold::kSum,
       false},
      {"scale_cols", kRowWise, kLocal, true, Z::kFirst, equal_widths, scale_cols_gradient},
      {"mul_column_sum", kReduction, kLocal, false, Z::kNone, column_reduction, nullptr},
      {"scale_by", kRowWise, kLocal, true, Z::kFirst, scale_by_shape, scale_by_gradient, nullptr,
       1},
      {"dot_sum", kReduction, kFull, false, Z::kNone, scalar_reduction, nullptr},
      {"scale_rows", kRowWise, kLocal, true, Z::kEither, scale_rows_shape, scale_heads_gradient,
       nullptr, 1},
      {"scale_heads", kRowWise, kFull, true, Z::kEither, scale_heads_shape, scale_heads_gradient},
      {"head_dot", kRowWise, kFull, false, Z::kEither, head_sums_shape, head_dot_gradient},
      {"head_sum", kRowWise, kFull, false, Z::kFirst, head_sums_shape, head_sum_gradient},
      {"head_broadcast", kRowWise, kFull, true, Z::kFirst, head_broadcast_shape,
       head_broadcast_gradient},
      {"heads_mean", kRowWise, kFull, false, Z::kFirst, heads_mean_shape, heads_mean_gradient},
      {"heads_spread", kRowWise, kFull, true, Z::kFirst, heads_spread_shape, heads_spread_gradient},
      {"concat", kRowWise, kFull, true, Z::kAll, concat_shape, concat_gradient},
      {"columns", kRowWise, kFull, true, Z::kFirst, columns_shape, columns_gradient},
      {"place_columns", kRowWise, kFull, true, Z::kFirst, place_columns_shape,
       place_columns_gradient},
      {"pick_type", kRowWise, kFull, true, Z::kFirst, pick_type_shape, pick_type_gradient},
      {"place_type", kRowWise, kFull, true, Z::kFirst, place_type_shape, place_type_gradient},
      {"degree_factor", kRowWise, kFull, true, Z::kNone, degree_factor_shape, nullptr},
      {"binary_label", kRowWise, kLocal, true, Z::kNone, binary_label_shape, nullptr},
      {"gru", kRowWise, kFull, false, Z::kNone, gru_shape, gru_gradient},
      {"gru_input_gradient", kRowWise, kFull, false, Z::kFirst, gate_gradient_shape, nullptr},
      {"gru_hidden_gradient", kRowWise, kFull, false, Z::kFirst, gate_gradient_shape, nullptr},
      {"gru_state_gradient", kRowWise, kFull, true, Z::kFirst, like_first, nullptr},
      {"softmax_weight", kRowWise, kLocal, true, Z::kNone, equal_widths, nullptr},
      {"edge_dropout", kRowWise, kFull, true, Z::kFirst, edge_dropout_shape, edge_dropout_gradient},
      {"select_winner", kRowWise, kLocal, true, Z::kFirst, like_first, nullptr},
  };
  return kEntries;
}

TensorId degree_factor(TensorGraph& graph, DegreeFactor factor) {
  constexpr const char* kNames[] = {"in_factor", "out_factor", "inverse_in_degree",
                                    "inverse_in_degree_with_loops", "loop_factor"};
  const OperatorDef& def = find_operator("degree_factor");
  const auto value = static_cast<double>(factor);
  for (const Operation& operation : graph.operations()) {
    if (operation.def == &def && operation.attributes.value == value) return operation.output;
  }
  return graph.apply("degree_factor", {graph.input("degrees", kDegreeColumns, DType::kI32)},
                     {.value = value}, kNames[static_cast<std::size_t>(factor)]);
}

TensorId binary_labels(TensorGraph& graph) {
  return graph.apply("binary_label", {graph.input("labels", 1, DType::kI32)}, {}, "binary_labels");
}

}  // namespace ooc
