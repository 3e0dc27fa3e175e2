#include "engine/graph/zero_rows.h"

#include <algorithm>

#include "engine/graph/operators.h"

namespace ooc {
namespace {

// Of an operator's output, given its operands'.
int made_of(ZeroRows rule, const Attributes& attributes, const std::vector<int>& operands) {
  switch (rule) {
    case ZeroRows::kNone:
    case ZeroRows::kTrain:
      return -1;
    case ZeroRows::kFirst:
      return operands[0];
    case ZeroRows::kFirstUnshifted:
      return attributes.shift == 0 ? operands[0] : -1;
    case ZeroRows::kEither:
      return operands[0] >= 0 ? operands[0] : operands[1];
    case ZeroRows::kAll: {
      const bool equal = std::all_of(operands.begin(), operands.end(),
                                     [&](int operand) { return operand == operands[0]; });
      return equal ? operands[0] : -1;
    }
  }
  return -1;
}

template <class Known>
std::vector<Known> known(const std::vector<int>& ids, const std::vector<Known>& of_all) {
  std::vector<Known> operands;
  for (const int id : ids) operands.push_back(of_all[static_cast<std::size_t>(id)]);
  return operands;
}

}  // namespace

std::vector<TensorId> zero_outside_train(const TensorGraph& graph) {
  std::vector<TensorId> zero(graph.tensors().size(), -1);
  for (const Operation& operation : graph.operations()) {
    if (graph.shape(operation.output).space != Space::kVertex) continue;
    const ZeroRows rule = operation.def->zero_rows;
    zero[static_cast<std::size_t>(operation.output)] =
        rule == ZeroRows::kTrain
            ? operation.inputs[2]
            : made_of(rule, operation.attributes, known(operation.inputs, zero));
  }
  return zero;
}

std::vector<double> expected_densities(const TensorGraph& graph) {
  std::vector<double> densities(graph.tensors().size(), 1);
  for (const Operation& operation : graph.operations()) {
    if (operation.def->density == nullptr) continue;
    densities[static_cast<std::size_t>(operation.output)] =
        operation.def->density(operation.attributes, known(operation.inputs, densities));
  }
  return densities;
}

ValueId splits_of_edges(const Program& program, const Propagation& work,
                        const std::vector<ValueId>& vertex_zero) {
  std::vector<ValueId> zero = vertex_zero;
  zero.resize(program.values.size(), -1);
  const auto of = [&](ValueId id) -> ValueId& { return zero[static_cast<std::size_t>(id)]; };
  for (const EdgeInput& input : work.inputs) {
    // Of a batch, splits have a row for the seeds alone.
    const auto level = [&](ValueId id) {
      return program.values[static_cast<std::size_t>(id)].level;
    };
    const bool knows = input.load == EdgeLoad::kStreamed && of(input.vertex) >= 0 &&
                       level(of(input.vertex)) == level(input.vertex);
    of(input.edge) = knows ? of(input.vertex) : -1;
  }
  for (const RowStep& step : work.steps) {
    // Products with matrices and sums over edges take the edges of a batch together: other batches
    // would give other bits.
    const auto by_itself = [&](ValueId id) {
      const Value& value = program.values[static_cast<std::size_t>(id)];
      return value.kind == ValueKind::kEdge || value.rows == 1;
    };
    const bool sums =
        program.values[static_cast<std::size_t>(step.outputs[0])].kind == ValueKind::kReduction;
    if (sums || !std::all_of(step.inputs.begin(), step.inputs.end(), by_itself)) return -1;
    of(step.outputs[0]) =
        made_of(find_operator(step.op).zero_rows, step.attributes, known(step.inputs, zero));
  }
  ValueId splits = -1;
  for (const EdgeFold& fold : work.folds) {
    const ZeroRows rule = fold.inputs.size() > 1 ? ZeroRows::kEither : ZeroRows::kFirst;
    const ValueId folded = made_of(rule, {}, known(fold.inputs, zero));
    const bool first = &fold == work.folds.data();
    if (fold.fold != Fold::kSum || folded < 0 || (!first && folded != splits)) return -1;
    splits = folded;
  }
  return splits;
}

}  // namespace ooc
