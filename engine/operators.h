// The operator table: for each operator how its output depends on its inputs, its shape and its
// gradient. Gradients, stages and plans read it, and nothing else knows an operator by name (after
// Tofu's tensor descriptions). A new operator is one entry here and one kernel of the same name
// (kernels/row_kernels.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tensor_graph.h"
#include "kernels/edge_program.h"

namespace ooc {

// How rows of the output depend on rows of the inputs.
enum class Dependence {
  kRowWise,     // row i of the output on row i of the operands: of vertices, or of edges
  kToEdges,     // an edge's row on a row of one of its two vertices
  kAlongEdges,  // a vertex's row on the rows of its edges: a gather
  kReduction,   // a sum over all rows
};

// Over which columns work may be split. For plans that hold some slices of a tensor at a time; the
// resident plan splits none.
enum class FeatureDependence {
  kSliceLocal,  // a column of the output depends on the same column of the inputs
  kFullWidth,   // on all of them
};

class GradientBuilder;

struct OperatorDef {
  std::string name;
  Dependence dependence = Dependence::kRowWise;
  FeatureDependence features = FeatureDependence::kSliceLocal;
  // Cheap enough to be computed again where it is needed rather than kept.
  bool recompute = false;
  TensorShape (*shape)(const TensorGraph& graph, const Operation& operation) = nullptr;
  // Adds the operations that compute the gradients of its inputs. Null: nothing flows back.
  void (*gradient)(GradientBuilder& builder, const Operation& operation) = nullptr;
  // What a gather's fold leaves beside its output: the ends of their names, and their shapes.
  std::vector<std::pair<std::string, TensorShape>> (*states)(const TensorGraph& graph,
                                                             const Operation& operation) = nullptr;
  // Linear in its first operand that has rows (of "add": in both), column by column: it commutes
  // with a matmul on the right.
  bool linear = false;
  Fold fold = Fold::kSum;  // of a gather
};

// Adds an entry; built-in operators are there already. Not thread-safe: call it at start-up.
void register_operator(OperatorDef def);
// An unknown name is a programmer's mistake.
const OperatorDef& find_operator(std::string_view name);

}  // namespace ooc
