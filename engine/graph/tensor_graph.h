// The tensor graph: what a model computes, as operators over tensors. A tensor is a vertex tensor
// (a row a vertex), an edge tensor (a row an edge), a parameter, or a reduction over all rows;
// which of them, and which shape, the operator table says (engine/graph/operators.h).
//
// Edge tensors are never stored. source() and destination() bring a vertex tensor's rows to the
// edges (SAGA-NN's Scatter, NGra §2.2); row-wise operators work on them as on vertex tensors; a
// gather folds them into a vertex tensor, and what feeds it is computed anew for every edge.
//
// In the graph of a batch tensors have levels (TensorShape::level). Rows of one operation are of
// one level: source() takes rows of level l + 1 to edges into level l, destination() those of level
// l; a gather gives rows of level l of in-edges, of l + 1 of out-edges. first_rows() and
// extend_rows() change it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/spec/operator.h"
#include "sched/plan/program.h"
#include "storage/base/types.h"

namespace ooc {

using TensorId = int;

enum class Space { kVertex, kEdge, kParameter, kReduction };

// Whether a row of the tensor belongs to a vertex or an edge.
constexpr bool has_rows(Space space) { return space == Space::kVertex || space == Space::kEdge; }

struct TensorShape {
  Space space = Space::kVertex;
  std::int64_t rows = 0;  // parameters and reductions
  std::int64_t cols = 0;
  DType dtype = DType::kF32;
  // Edge tensors: the edges are those of the data, and one more from v to v for each vertex
  // without.
  bool loops = false;
  // Vertex tensors: the rows of levels up to this one. Edge tensors: the edges into these.
  // kAllRows: all of a graph.
  int level = kAllRows;
};

struct Tensor {
  std::string name;
  TensorShape shape;
  int producer = -1;            // index into operations(); -1: an input or a parameter
  bool needs_gradient = false;  // something trainable feeds it through differentiable operators
};

struct OperatorDef;

struct Operation {
  const OperatorDef* def = nullptr;
  std::vector<TensorId> inputs;
  TensorId output = -1;
  Attributes attributes;
  Direction direction = Direction::kIn;  // of gathers
  std::vector<TensorId> states = {};     // of gathers: the rest of what their fold leaves
  bool loops = false;                    // of source and destination: TensorShape::loops
  int level = kAllRows;                  // of first_rows and extend_rows: TensorShape::level
};

class TensorGraph {
 public:
  // `real`: the scalar type of everything real-valued, fp32 or fp64.
  explicit TensorGraph(DType real) : real_(real) {}

  DType real() const { return real_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<Operation>& operations() const { return operations_; }
  const Tensor& tensor(TensorId id) const { return tensors_[static_cast<std::size_t>(id)]; }
  const TensorShape& shape(TensorId id) const { return tensor(id).shape; }

  // Whether a tensor of this name comes from outside.
  bool has_input(const std::string& name) const;
  // A vertex tensor from outside; the same name gives the same tensor.
  TensorId input(const std::string& name, std::int64_t cols, DType dtype,
                 bool needs_gradient = false);
  // A matrix from outside, kept between runs.
  TensorId parameter(const std::string& name, std::int64_t rows, std::int64_t cols,
                     bool trainable = true);
  // Applies an operator of the table; its shape rule is checked (OOC_CHECK).
  TensorId apply(std::string_view op, std::vector<TensorId> inputs,
                 const Attributes& attributes = {}, const std::string& name = "");
  // The rows of vertex tensor `x` at the edges' sources or destinations. Rows of an input are
  // copied first: edges read what stages made.
  TensorId source(TensorId x, bool loops = false) { return to_edges("source", x, loops); }
  TensorId destination(TensorId x, bool loops = false) { return to_edges("destination", x, loops); }
  // The rows of vertex tensor `x` up to a lower level; with zeros for rows of a higher one.
  TensorId first_rows(TensorId x, int level) { return to_level("first_rows", x, level); }
  TensorId extend_rows(TensorId x, int level) { return to_level("extend_rows", x, level); }
  // What the edges carry, by name (kEdgeWeightsInput and the others in
  // engine/graph/edge_operators.h).
  TensorId edge_input(const std::string& name, std::int64_t cols, DType dtype, bool loops = false);
  // The operator "gather_<fold>" over edge tensors. kIn: row v folds the edges u -> v; kOut: row u
  // folds the edges u -> v.
  TensorId gather(std::string_view fold, std::vector<TensorId> inputs, Direction direction,
                  const std::string& name = "");

  // For rewrites: a tensor from outside like that of another graph, and an operation like another,
  // over inputs of this graph. Names are kept.
  TensorId add_like(const Tensor& leaf);
  const Operation& add_like(const Operation& operation, std::vector<TensorId> inputs,
                            const std::string& name);

 private:
  TensorId add_tensor(Tensor tensor);
  TensorId add_input(const std::string& name, const TensorShape& shape, bool needs_gradient);
  TensorId add_operation(Operation operation, const std::string& name);
  TensorId to_edges(std::string_view end, TensorId x, bool loops);
  TensorId to_level(std::string_view op, TensorId x, int level);

  DType real_;
  std::vector<Tensor> tensors_;
  std::vector<Operation> operations_;  // in an order in which every input is there
};

// The level of the rows that an operation makes or, of a reduction, sums up.
int rows_level(const TensorGraph& graph, const Operation& operation);

// The operations that the roots depend on, in the graph's order.
std::vector<const Operation*> live_operations(const TensorGraph& graph,
                                              const std::vector<TensorId>& roots);

}  // namespace ooc
