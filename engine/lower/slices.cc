#include "engine/lower/slices.h"

#include <algorithm>

#include "engine/graph/operators.h"

namespace ooc {

std::int64_t slice_local_cols(const Program& program, const Propagation& work) {
  const auto value = [&](ValueId id) -> const Value& {
    return program.values[static_cast<std::size_t>(id)];
  };
  if (work.folds.empty()) return 0;
  const std::int64_t cols = value(work.folds[0].accumulators[0]).cols;
  for (const EdgeFold& fold : work.folds) {
    if (fold.fold == Fold::kSoftmax || value(fold.accumulators[0]).cols != cols) return 0;
  }
  for (const RowStep& step : work.steps) {
    if (value(step.outputs[0]).kind != ValueKind::kEdge) return 0;
    const bool local = find_operator(step.op).features == FeatureDependence::kSliceLocal;
    if (value(step.outputs[0]).cols == cols && local) continue;
    const bool wide = std::any_of(step.inputs.begin(), step.inputs.end(), [&](ValueId input) {
      return value(input).cols == cols || value(input).kind != ValueKind::kEdge;
    });
    if (wide || value(step.outputs[0]).cols == cols) return 0;
  }
  return cols;
}

}  // namespace ooc
