#include "engine/graph/loss_operators.h"

#include <string>

#include "engine/graph/gradients.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

std::int64_t cols_of(const TensorGraph& graph, const Operation& op, std::size_t input) {
  return graph.shape(op.inputs[input]).cols;
}

TensorShape sums(std::int64_t cols) { return {Space::kReduction, 3, cols, DType::kF64}; }

TensorShape class_loss_shape(const TensorGraph&, const Operation&) { return sums(3); }

TensorShape weighted_class_loss_shape(const TensorGraph& graph, const Operation& op) {
  OOC_CHECK(cols_of(graph, op, 3) == cols_of(graph, op, 0));
  return sums(4);
}

TensorShape bits_loss_shape(const TensorGraph& graph, const Operation& op) {
  OOC_CHECK(cols_of(graph, op, 1) == cols_of(graph, op, 0));
  OOC_CHECK(op.inputs.size() < 4 || cols_of(graph, op, 3) == cols_of(graph, op, 0));
  return sums(3);
}

TensorShape value_loss_shape(const TensorGraph& graph, const Operation& op) {
  OOC_CHECK(cols_of(graph, op, 1) == cols_of(graph, op, 0));
  return sums(2);
}

TensorShape like_logits(const TensorGraph& graph, const Operation& op) {
  return {Space::kVertex, 0, cols_of(graph, op, 0), graph.real()};
}

void loss_gradient(GradientBuilder& builder, const Operation& op) {
  if (!builder.wants(op.inputs[0])) return;
  builder.add(op.inputs[0],
              builder.graph().apply(op.def->name + "_gradient", op.inputs, op.attributes));
}

}  // namespace

std::span<const OperatorDef> loss_operators() {
  constexpr auto kRowWise = Dependence::kRowWise;
  constexpr auto kReduction = Dependence::kReduction;
  using Z = ZeroRows;
  constexpr auto kLocal = FeatureDependence::kSliceLocal;
  constexpr auto kFull = FeatureDependence::kFullWidth;
  static const OperatorDef kEntries[] = {
      // name, dependence, features, recompute, zero rows, shape, gradient
      {"softmax_cross_entropy", kReduction, kFull, false, Z::kNone, class_loss_shape,
       loss_gradient},
      {"softmax_cross_entropy_gradient", kRowWise, kFull, false, Z::kTrain, like_logits, nullptr},
      {"softmax_cross_entropy_weighted", kReduction, kFull, false, Z::kNone,
       weighted_class_loss_shape, loss_gradient},
      {"softmax_cross_entropy_weighted_gradient", kRowWise, kFull, false, Z::kTrain, like_logits,
       nullptr},
      {"sigmoid_cross_entropy", kReduction, kFull, false, Z::kNone, bits_loss_shape, loss_gradient},
      {"sigmoid_cross_entropy_gradient", kRowWise, kLocal, true, Z::kTrain, like_logits, nullptr},
      {"sigmoid_cross_entropy_weighted", kReduction, kFull, false, Z::kNone, bits_loss_shape,
       loss_gradient},
      {"sigmoid_cross_entropy_weighted_gradient", kRowWise, kLocal, true, Z::kTrain, like_logits,
       nullptr},
      {"value_loss", kReduction, kFull, false, Z::kNone, value_loss_shape, loss_gradient},
      {"value_loss_gradient", kRowWise, kLocal, true, Z::kTrain, like_logits, nullptr},
  };
  return kEntries;
}

}  // namespace ooc
