// What sched/ runs: a program of stages over values. engine/ makes it from a tensor graph; it knows
// nothing of budgets or devices. A stage is one propagation along edges (or none) and the row-wise
// work fused behind it (NGra §3.2); the work before a propagation belongs to an earlier stage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/operator.h"
#include "storage/types.h"

namespace ooc {

using ValueId = int;

enum class ValueKind {
  kInput,      // a vertex tensor from outside, read only: features, labels, ids, row factors
  kVertex,     // a vertex tensor made by a stage
  kParameter,  // a small matrix from outside: the same for every row
  kReduction,  // a small matrix summed over all rows by one stage, read by later ones
};

struct Value {
  std::string name;
  ValueKind kind = ValueKind::kVertex;
  std::int64_t rows = 0;  // parameters and reductions; vertex tensors have a row a vertex
  std::int64_t cols = 0;
  DType dtype = DType::kF32;
};

// One operator on rows. Its operands, in the order its kernel documents (kernels/row_kernels.h).
struct RowStep {
  std::string op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
};

// accumulator[v] = fold of source[u] over the edges of v in this direction.
struct Propagation {
  Direction direction = Direction::kIn;
  std::string fold = "sum";
  ValueId source = -1;
  ValueId accumulator = -1;
};

struct Stage {
  std::string name;
  std::optional<Propagation> propagation;
  std::vector<RowStep> steps;  // in an order in which every input is there
};

struct Program {
  std::string name;
  DType real = DType::kF32;  // scalar type of its real-valued operands
  std::vector<Value> values;
  std::vector<Stage> stages;
  std::vector<ValueId> outputs;  // vertex values that are still there after a run
};

}  // namespace ooc
