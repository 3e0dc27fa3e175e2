// The operator table: for each operator how its output depends on its inputs, its shape and its
// gradient. Gradients, rewrites, stages and plans read it (after Tofu's tensor descriptions). A new
// operator is one entry here and one kernel of the same name (kernels/spec/row_kernels.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/graph/tensor_graph.h"
#include "kernels/spec/edge_program.h"

namespace ooc {

// How rows of the output depend on rows of the inputs.
enum class Dependence {
  kRowWise,     // row i of the output on row i of the operands: of vertices, or of edges
  kToEdges,     // an edge's row on a row of one of its two vertices
  kAlongEdges,  // a vertex's row on the rows of its edges: a gather
  kReduction,   // a sum over all rows
};

// Over which columns work may be split: propagations of slice-local operators run a slice of their
// tensors at a time.
enum class FeatureDependence {
  kSliceLocal,  // a column of the output depends on the same column of the inputs
  kFullWidth,   // on all of them
};

// When a row of the output is known to be zero, if operands are finite.
enum class ZeroRows {
  kNone,            // never
  kFirst,           // where the first operand's is
  kFirstUnshifted,  // likewise, if Attributes::shift is 0
  kEither,          // where one of the first two operands' is: products
  kAll,             // where every operand's is: sums
  kTrain,           // outside the train split, by the third operand: gradients of losses
};

class GradientBuilder;

struct OperatorDef {
  std::string name;
  Dependence dependence = Dependence::kRowWise;
  FeatureDependence features = FeatureDependence::kSliceLocal;
  // Cheap enough to be computed again where it is needed rather than kept.
  bool recompute = false;
  ZeroRows zero_rows = ZeroRows::kNone;
  TensorShape (*shape)(const TensorGraph& graph, const Operation& operation) = nullptr;
  // Adds the operations that compute the gradients of its inputs. Null: nothing flows back.
  void (*gradient)(GradientBuilder& builder, const Operation& operation) = nullptr;
  // What a gather's fold leaves beside its output: the ends of their names, and their shapes.
  std::vector<std::pair<std::string, TensorShape>> (*states)(const TensorGraph& graph,
                                                             const Operation& operation) = nullptr;
  // In how many operands, the first ones, it is linear, column by column: it commutes with a matmul
  // on the right of them. 0: in none.
  int linear = 0;
  Fold fold = Fold::kSum;  // of a gather
  // Whether it may be done for vertices that no edge asks it of: its result is finite where its
  // operands are. A gradient of 0 would not stay 0 beside an infinite value.
  bool moves = true;
  // The share of the output's elements that is expected not to be zero, from the operands' shares.
  // Null: all of them.
  double (*density)(const Attributes& attributes, const std::vector<double>& operands) = nullptr;
};

// Adds an entry; built-in operators are there already. Not thread-safe: call it at start-up.
void register_operator(OperatorDef def);
// An unknown name is a programmer's mistake.
const OperatorDef& find_operator(std::string_view name);

}  // namespace ooc
