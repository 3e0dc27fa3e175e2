#include "engine/graph/edge_operators.h"

#include <vector>

#include "engine/graph/gradients.h"
#include "engine/graph/row_operators.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc {
namespace {

using States = std::vector<std::pair<std::string, TensorShape>>;

TensorShape to_edges_shape(const TensorGraph& graph, const Operation& operation) {
  TensorShape shape = graph.shape(operation.inputs[0]);
  OOC_CHECK(shape.space == Space::kVertex);
  shape.space = Space::kEdge;
  shape.loops = operation.loops;
  return shape;
}

TensorShape edge_key_shape(const TensorGraph&, const Operation&) {
  return {Space::kVertex, 0, 3, DType::kI64};
}

TensorShape winner_key_shape(const TensorGraph&, const Operation&) {
  return {Space::kVertex, 0, 1, DType::kI64};
}

TensorShape copy_shape(const TensorGraph& graph, const Operation& operation) {
  return graph.shape(operation.inputs[0]);
}

void copy_gradient(GradientBuilder& builder, const Operation& op) {
  builder.add(op.inputs[0], builder.output_gradient(op));
}

// A vertex tensor of another level (Operation::level).
TensorShape other_rows_shape(const TensorGraph& graph, const Operation& operation) {
  OOC_CHECK(operation.level != kAllRows);
  const TensorShape& shape = graph.shape(operation.inputs[0]);
  OOC_CHECK(shape.space == Space::kVertex);
  return shape;
}

void first_rows_gradient(GradientBuilder& builder, const Operation& op) {
  TensorGraph& graph = builder.graph();
  const int level = graph.shape(op.inputs[0]).level;
  builder.add(op.inputs[0], graph.extend_rows(builder.output_gradient(op), level));
}

void extend_rows_gradient(GradientBuilder& builder, const Operation& op) {
  TensorGraph& graph = builder.graph();
  const int level = graph.shape(op.inputs[0]).level;
  builder.add(op.inputs[0], graph.first_rows(builder.output_gradient(op), level));
}

// The shape of a vertex tensor that folds edge tensor `edges`.
TensorShape folded(const TensorGraph& graph, TensorId edges) {
  TensorShape shape = graph.shape(edges);
  OOC_CHECK(shape.space == Space::kEdge);
  shape.space = Space::kVertex;
  shape.loops = false;
  return shape;
}

TensorShape gather_shape(const TensorGraph& graph, const Operation& operation) {
  return folded(graph, operation.inputs[0]);
}

States max_states(const TensorGraph& graph, const Operation& operation) {
  TensorShape winner = folded(graph, operation.inputs[0]);
  winner.dtype = DType::kI64;
  return {{".winner", winner}};
}

TensorShape softmax_shape(const TensorGraph& graph, const Operation& operation) {
  const TensorShape& score = graph.shape(operation.inputs[0]);
  const TensorShape& values = graph.shape(operation.inputs[1]);
  OOC_CHECK(score.loops == values.loops && score.space == values.space);
  OOC_CHECK(score.cols <= kSliceWidth && values.cols % score.cols == 0);
  return folded(graph, operation.inputs[1]);
}

States softmax_states(const TensorGraph& graph, const Operation& operation) {
  const TensorShape score = folded(graph, operation.inputs[0]);
  return {{".max", score}, {".sum", score}};
}

// The gradient of a row that was read at the edges is the sum over the edges that read it.
void source_gradient(GradientBuilder& builder, const Operation& op) {
  builder.add(op.inputs[0],
              builder.graph().gather("sum", {builder.output_gradient(op)}, Direction::kOut));
}

void destination_gradient(GradientBuilder& builder, const Operation& op) {
  builder.add(op.inputs[0],
              builder.graph().gather("sum", {builder.output_gradient(op)}, Direction::kIn));
}

// Row v of a vertex tensor at the edges that v folded.
TensorId at_edges(TensorGraph& graph, TensorId rows, const Operation& gather) {
  const bool loops = graph.shape(gather.inputs[0]).loops;
  return gather.direction == Direction::kIn ? graph.destination(rows, loops)
                                            : graph.source(rows, loops);
}

void gather_sum_gradient(GradientBuilder& builder, const Operation& op) {
  builder.add(op.inputs[0], at_edges(builder.graph(), builder.output_gradient(op), op));
}

void gather_max_gradient(GradientBuilder& builder, const Operation& op) {
  TensorGraph& graph = builder.graph();
  const TensorId dy = at_edges(graph, builder.output_gradient(op), op);
  const TensorId winner = at_edges(graph, op.states[0], op);
  builder.add(op.inputs[0], graph.apply("select_winner", {dy, winner, op.inputs[1]}));
}

TensorShape softmax_normalize_shape(const TensorGraph& graph, const Operation& operation) {
  return graph.shape(operation.inputs[0]);
}

// Of the gather and the division together. With a = exp(score - max) / sum an edge's share:
// dX = a dY[v]; dscore = a (<dY[v], X> - <dY[v], Y[v]>), head by head. The last product belongs to
// the vertex and is computed there once (FlashAttention's D, Dao et al. 2022, app. B.2).
void softmax_normalize_gradient(GradientBuilder& builder, const Operation& op) {
  TensorGraph& graph = builder.graph();
  const auto producer = static_cast<std::size_t>(graph.tensor(op.inputs[0]).producer);
  const Operation gather = graph.operations()[producer];
  const TensorId score = gather.inputs[0], values = gather.inputs[1];
  Attributes heads;
  heads.heads = graph.shape(score).cols;
  const TensorId dy = builder.output_gradient(op);
  const TensorId dy_edges = at_edges(graph, dy, gather);
  const TensorId share =
      graph.apply("softmax_weight", {score, at_edges(graph, gather.states[0], gather),
                                     at_edges(graph, gather.states[1], gather)});
  if (builder.wants(values)) {
    builder.add(values, graph.apply("scale_heads", {dy_edges, share}));
  }
  if (!builder.wants(score)) return;
  const TensorId mean = graph.apply("head_dot", {dy, op.output}, heads);
  const TensorId pull = graph.apply("head_dot", {dy_edges, values}, heads);
  const TensorId centred = graph.apply("sub", {pull, at_edges(graph, mean, gather)});
  builder.add(score, graph.apply("mul", {share, centred}));
}

TensorShape factor_shape(const TensorGraph& graph, const Operation&) {
  return {Space::kVertex, 0, 1, graph.real()};
}

TensorShape count_shape(const TensorGraph&, const Operation&) {
  return {Space::kReduction, 1, 1, DType::kF64};
}

// The gradient of a softmax is softmax_normalize's: it takes the gather with it.
void no_gradient(GradientBuilder&, const Operation&) {}

}  // namespace

std::span<const OperatorDef> edge_operators() {
  using Z = ZeroRows;
  constexpr auto kLocal = FeatureDependence::kSliceLocal;
  constexpr auto kFull = FeatureDependence::kFullWidth;
  constexpr auto kRowWise = Dependence::kRowWise;
  constexpr auto kToEdges = Dependence::kToEdges;
  constexpr auto kGather = Dependence::kAlongEdges;
  static const OperatorDef entries[] = {
      // name, dependence, features, recompute, zero rows, shape, gradient, states, linear, fold
      {"source", kToEdges, kLocal, false, Z::kFirst, to_edges_shape, source_gradient, nullptr, 1},
      {"destination", kToEdges, kLocal, false, Z::kFirst, to_edges_shape, destination_gradient,
       nullptr, 1},
      {"edge_key", kRowWise, kFull, false, Z::kNone, edge_key_shape, nullptr},
      {"winner_key", kRowWise, kFull, false, Z::kNone, winner_key_shape, nullptr},
      {"copy", kRowWise, kLocal, false, Z::kFirst, copy_shape, copy_gradient, nullptr, 1},
      {"copy_ids", kRowWise, kLocal, false, Z::kNone, copy_shape, nullptr},
      {"first_rows", kRowWise, kLocal, true, Z::kFirst, other_rows_shape, first_rows_gradient,
       nullptr, 1},
      {"extend_rows", kRowWise, kLocal, true, Z::kFirst, other_rows_shape, extend_rows_gradient,
       nullptr, 1},
      {"gather_sum", kGather, kLocal, false, Z::kNone, gather_shape, gather_sum_gradient, nullptr,
       1},
      {"gather_max", kGather, kLocal, false, Z::kNone, gather_shape, gather_max_gradient,
       max_states, 0, Fold::kMax},
      {"gather_softmax", kGather, kFull, false, Z::kNone, softmax_shape, no_gradient,
       softmax_states, 0, Fold::kSoftmax},
      {"softmax_normalize", kRowWise, kFull, true, Z::kFirst, softmax_normalize_shape,
       softmax_normalize_gradient},
      // Of sums of weights.
      {"inverse", kRowWise, kLocal, true, Z::kFirst, factor_shape, nullptr},
      {"inverse_sqrt", kRowWise, kLocal, true, Z::kFirst, factor_shape, nullptr},
      {"count_zeros", Dependence::kReduction, kFull, false, Z::kNone, count_shape, nullptr},
  };
  return entries;
}

EdgeLoad edge_load(const std::string& name) {
  if (name == kEdgeWeightsInput) return EdgeLoad::kWeights;
  if (name == kEdgeTypesInput) return EdgeLoad::kTypes;
  if (name == kEdgeFeaturesInput) return EdgeLoad::kFeatures;
  OOC_CHECK(name == kParallelIndexInput);
  return EdgeLoad::kParallelIndex;
}

TensorId edge_key(TensorGraph& graph, bool loops) {
  const TensorId ids = graph.input("ids", 1, DType::kI64);
  return graph.apply("edge_key", {graph.source(ids, loops), graph.destination(ids, loops),
                                  graph.edge_input(kParallelIndexInput, 1, DType::kI64, loops)});
}

TensorId weighted_degree_factor(TensorGraph& graph, DegreeFactor factor) {
  const auto sum = [&](Direction direction, bool loops, const char* name) {
    const TensorId weights = graph.edge_input(kEdgeWeightsInput, 1, DType::kF64, loops);
    return graph.gather("sum", {weights}, direction, name);
  };
  switch (factor) {
    case DegreeFactor::kIn:
      return graph.apply("inverse_sqrt", {sum(Direction::kIn, true, "in_weights")}, {},
                         "in_factor");
    case DegreeFactor::kOut:
      return graph.apply("inverse_sqrt", {sum(Direction::kOut, true, "out_weights")}, {},
                         "out_factor");
    case DegreeFactor::kInverseIn:
      return graph.apply("inverse", {sum(Direction::kIn, false, "in_weights")}, {},
                         "inverse_in_degree");
    case DegreeFactor::kInverseInWithLoops:
      return graph.apply("inverse", {sum(Direction::kIn, true, "in_weights")}, {},
                         "inverse_in_degree_with_loops");
    case DegreeFactor::kLoop:
      break;
  }
  return degree_factor(graph, factor);
}

TensorId gather_sum(TensorGraph& graph, TensorId edges, const std::string& name) {
  return graph.gather("sum", {edges}, Direction::kIn, name);
}

TensorId gather_mean(TensorGraph& graph, TensorId edges, TensorId inverse_degree,
                     const std::string& name) {
  return graph.apply("scale_rows", {gather_sum(graph, edges), inverse_degree}, {}, name);
}

TensorId gather_max(TensorGraph& graph, TensorId edges, const std::string& name) {
  const bool loops = graph.shape(edges).loops;
  const TensorId source = graph.source(graph.input("ids", 1, DType::kI64), loops);
  const TensorId index = graph.edge_input(kParallelIndexInput, 1, DType::kI64, loops);
  const TensorId key = graph.apply("winner_key", {source, index});
  return graph.gather("max", {edges, key}, Direction::kIn, name);
}

TensorId gather_min(TensorGraph& graph, TensorId edges, const std::string& name) {
  Attributes negative;
  negative.value = -1;
  const TensorId largest = gather_max(graph, graph.apply("affine", {edges}, negative));
  return graph.apply("affine", {largest}, negative, name);
}

TensorId gather_softmax(TensorGraph& graph, TensorId score, TensorId edges,
                        const std::string& name) {
  const TensorId sums = graph.gather("softmax", {score, edges}, Direction::kIn);
  const auto producer = static_cast<std::size_t>(graph.tensor(sums).producer);
  const TensorId sum = graph.operations()[producer].states[1];
  return graph.apply("softmax_normalize", {sums, sum}, {}, name);
}

}  // namespace ooc
