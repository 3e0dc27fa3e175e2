// What sched/ runs: a program of stages over values. engine/ makes it from a tensor graph; it knows
// nothing of budgets or devices. A stage is one propagation along edges (or none) and the row-wise
// work fused after it (NGra §3.2); the work before a propagation belongs to an earlier stage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/spec/edge_program.h"
#include "kernels/spec/operator.h"
#include "storage/base/types.h"

namespace ooc {

using ValueId = int;

// Rows of a vertex tensor. Of a graph: all of its vertices. Of a batch: those of levels up to this
// one. Level 0 are the seeds, level l + 1 what edges into level l come from; a batch's vertices are
// numbered level after level, so rows of a level begin with those of the one before.
inline constexpr int kAllRows = -1;

enum class ValueKind {
  kInput,      // a vertex tensor from outside, read only: features, labels, ids, row factors
  kVertex,     // a vertex tensor made by a stage
  kParameter,  // a small matrix from outside: the same for every row
  kReduction,  // a small matrix summed over all rows by one stage, read by later ones
  kEdge,       // a row an edge: exists for the edges at hand inside one propagation only
};

struct Value {
  std::string name;
  ValueKind kind = ValueKind::kVertex;
  std::int64_t rows = 0;  // parameters and reductions; vertex tensors have a row a vertex
  std::int64_t cols = 0;
  DType dtype = DType::kF32;
  // Expected: the share of its elements that aren't zero, but for rows that are known to be.
  double density = 1;
  bool train_only = false;  // rows outside the train split are zero
  int level = kAllRows;     // of vertex tensors and, that of the vertices they go into, of edges
};

// One operator on rows. Its operands, in the order its kernel documents
// (kernels/spec/row_kernels.h).
struct RowStep {
  std::string op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
};

// One edge value that a propagation starts from: a row of a vertex tensor, or what the edge
// carries.
struct EdgeInput {
  EdgeLoad load = EdgeLoad::kStreamed;
  ValueId vertex = -1;  // kStreamed: row of the neighbour; kResident: of the vertex that folds
  ValueId edge = -1;
};

// accumulators[0][v] = fold of inputs over the edges of v, of a sum perhaps times a factor of each
// edge; the other accumulators are the rest of the fold's state (kernels/spec/edge_program.h).
struct EdgeFold {
  Fold fold = Fold::kSum;
  std::vector<ValueId> inputs;
  std::vector<ValueId> accumulators;
};

// Edge work: for every edge of v in this direction, its inputs, steps on edge values (which may
// also sum over all edges into reductions), and the folds into v.
struct Propagation {
  Direction direction = Direction::kIn;
  bool loops = false;  // each vertex without a self loop in the data gets one
  std::vector<EdgeInput> inputs;
  std::vector<RowStep> steps;
  std::vector<EdgeFold> folds;
  // Columns of the tensors that can be propagated a slice at a time; 0: they can't be.
  std::int64_t slice_local_cols = 0;
  // The input of splits, where an edge adds nothing but zeros to any fold unless its neighbour is
  // in the train split: others may be passed over. -1: every edge counts.
  ValueId splits = -1;
};

struct Stage {
  std::string name;
  std::optional<Propagation> propagation;
  std::vector<RowStep> steps;  // in an order in which every input is there
};

// What a stage makes and a later one makes again from what it reads, as a value of its own with the
// same bits. A plan may keep some of its rows instead.
struct Rematerialized {
  ValueId made = -1, recomputed = -1;
};

struct Program {
  std::string name;
  DType real = DType::kF32;  // scalar type of its real-valued operands
  std::vector<Value> values;
  std::vector<Stage> stages;
  std::vector<ValueId> outputs;  // vertex values that are still there after a run
  std::vector<Rematerialized> rematerialized;
};

}  // namespace ooc
