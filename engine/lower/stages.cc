#include "engine/lower/stages.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "engine/graph/operators.h"
#include "engine/graph/zero_rows.h"
#include "engine/lower/stage_builder.h"

namespace ooc {
namespace {

// Of a row of a vertex tensor.
std::int64_t row_bytes(const Value& value) {
  const bool vertex = value.kind == ValueKind::kInput || value.kind == ValueKind::kVertex;
  return vertex ? value.cols * static_cast<std::int64_t>(dtype_bytes(value.dtype)) : 0;
}

struct StageValues {
  std::set<ValueId> edges_read, rows_read, made;

  explicit StageValues(const Stage& stage) {
    add(stage.steps);
    if (!stage.propagation) return;
    add(stage.propagation->steps);
    for (const EdgeInput& input : stage.propagation->inputs) {
      edges_read.insert(input.vertex);
    }
    for (const EdgeFold& fold : stage.propagation->folds) {
      made.insert(fold.accumulators.begin(), fold.accumulators.end());
    }
  }

 private:
  void add(const std::vector<RowStep>& steps) {
    for (const RowStep& step : steps) {
      rows_read.insert(step.inputs.begin(), step.inputs.end());
      made.insert(step.outputs.begin(), step.outputs.end());
    }
  }
};

// Of a row of all vertex tensors: what stages read that is from outside or that others made, and
// what they make for others. That is what moves where nothing stays in memory.
std::int64_t moved_bytes(const Program& program) {
  const auto bytes_of = [&](ValueId id) {
    return row_bytes(program.values[static_cast<std::size_t>(id)]);
  };
  std::int64_t bytes = 0;
  std::set<ValueId> kept(program.outputs.begin(), program.outputs.end());
  for (const Stage& stage : program.stages) {
    const StageValues values(stage);
    for (const std::set<ValueId>* read : {&values.edges_read, &values.rows_read}) {
      for (const ValueId id : *read) {
        if (id < 0 || values.made.contains(id)) continue;
        bytes += bytes_of(id);
        kept.insert(id);
      }
    }
  }
  for (const Stage& stage : program.stages) {
    for (const ValueId id : StageValues(stage).made) {
      if (kept.contains(id)) bytes += bytes_of(id);
    }
  }
  return bytes;
}

// Sinks operations into later stages, where less then moves: a product as wide as what it is made
// of, which is kept anyway, or wider than it, into the stage that reads it; a reduction that no
// operation waits for, such as a weight's gradient, into one that reads its rows anyway. Then keeps
// what would be computed again from no less than it takes itself, such as a loss' gradient.
class Sinking {
 public:
  Sinking(const TensorGraph& graph, const std::string& name, StageRequest request)
      : graph_(graph), name_(name), request_(std::move(request)) {
    best_ = *build_stages(graph_, name_, request_);
    least_ = moved_bytes(best_.staged.program);
  }

  StagedGraph run() {
    const std::vector<const Operation*> operations = best_.operations;
    find_readers();
    for (auto it = operations.rbegin(); it != operations.rend(); ++it) {
      bool sinks = may_sink(**it);
      while (sinks) sinks = sink(**it);
    }
    keep();
    return std::move(best_.staged);
  }

 private:
  static std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }

  std::int64_t row_bytes_of(TensorId id) const {
    const TensorShape& shape = graph_.shape(id);
    if (shape.space != Space::kVertex) return 0;
    return shape.cols * static_cast<std::int64_t>(dtype_bytes(shape.dtype));
  }

  // What is cheap is computed again where its inputs are kept; only what is wider than these may
  // be worth more than that.
  bool may_sink(const Operation& operation) const {
    if (operation.def->dependence == Dependence::kReduction) return !folds_edges(operation);
    if (operation.def->dependence != Dependence::kRowWise) return false;
    if (graph_.shape(operation.output).space != Space::kVertex) return false;
    return !operation.def->recompute ||
           std::all_of(operation.inputs.begin(), operation.inputs.end(), [&](TensorId input) {
             return row_bytes_of(input) < row_bytes_of(operation.output);
           });
  }

  // By tensor: the first stage after its own that reads it, or what its own stage makes of it. Of
  // what edges read that is the first that might.
  void find_readers() {
    next_.assign(graph_.tensors().size(), kNone);
    for (auto it = best_.operations.rbegin(); it != best_.operations.rend(); ++it) {
      const int stage = best_.stages[index((*it)->output)];
      for (const TensorId input : (*it)->inputs) {
        const bool here = best_.stages[index(input)] == stage;
        int& next = next_[index(input)];
        next = std::min(next, here ? next_[index((*it)->output)] : stage);
      }
    }
  }

  bool folds_edges(const Operation& operation) const {
    return std::any_of(operation.inputs.begin(), operation.inputs.end(),
                       [&](TensorId input) { return graph_.shape(input).space == Space::kEdge; });
  }

  // Later ones where it may cost less, the nearest first.
  std::set<int> later_stages(const Operation& operation) const {
    const int next = next_[index(operation.output)];
    if (operation.def->dependence != Dependence::kReduction) {
      return next == kNone ? std::set<int>{} : std::set<int>{next};
    }
    if (next != kNone) return {};  // somebody waits for it
    std::set<int> later;
    const std::vector<TensorId>& rows = operation.inputs;
    for (const Operation* other : best_.operations) {
      const int stage = best_.stages[index(other->output)];
      if (stage <= best_.stages[index(operation.output)]) continue;
      if (graph_.shape(other->output).space == Space::kEdge) continue;  // it reads them as it goes
      const bool reads =
          std::any_of(other->inputs.begin(), other->inputs.end(), [&](TensorId input) {
            return row_bytes_of(input) > 0 &&
                   std::find(rows.begin(), rows.end(), input) != rows.end();
          });
      if (reads) later.insert(stage);
    }
    return later;
  }

  // Further on; false: it is as good where it is.
  bool sink(const Operation& operation) {
    for (const int stage : later_stages(operation)) {
      if (sink_into(stage, operation)) return true;
    }
    return false;
  }

  void keep() {
    for (const TensorId tensor : std::vector<TensorId>(best_.again)) {
      StageRequest request = request_;
      request.kept.insert(tensor);
      std::optional<BuiltStages> built = build_stages(graph_, name_, request);
      if (!built || moved_bytes(built->staged.program) > least_) continue;
      take(std::move(request), std::move(*built));
    }
  }

  bool sink_into(int stage, const Operation& operation) {
    StageRequest request = request_;
    request.not_before[operation.output] = stage;
    std::optional<BuiltStages> built = build_stages(graph_, name_, request);
    if (!built) return false;
    if (moved_bytes(built->staged.program) >= least_) return false;
    take(std::move(request), std::move(*built));
    return true;
  }

  void take(StageRequest request, BuiltStages built) {
    request_ = std::move(request);
    best_ = std::move(built);
    least_ = moved_bytes(best_.staged.program);
    find_readers();
  }

  static constexpr int kNone = std::numeric_limits<int>::max();

  const TensorGraph& graph_;
  const std::string& name_;
  StageRequest request_;
  BuiltStages best_;
  std::int64_t least_ = 0;
  std::vector<int> next_;
};

// Which values' rows are zero outside the train split, and which edges the propagations may pass
// over for it.
void find_zero_rows(const TensorGraph& graph, StagedGraph& staged) {
  Program& program = staged.program;
  std::vector<ValueId> zero(program.values.size(), -1);
  const std::vector<TensorId> tensors = zero_outside_train(graph);
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const ValueId value = staged.values[tensor];
    if (value < 0 || tensors[tensor] < 0) continue;
    zero[static_cast<std::size_t>(value)] = staged.value(tensors[tensor]);
    program.values[static_cast<std::size_t>(value)].train_only = true;
  }
  for (Stage& stage : program.stages) {
    if (stage.propagation) {
      stage.propagation->splits = splits_of_edges(program, *stage.propagation, zero);
    }
  }
}

// Which share of each value is likely zero, for plans.
void expect_zeros(const TensorGraph& graph, StagedGraph& staged) {
  const std::vector<double> densities = expected_densities(graph);
  for (std::size_t tensor = 0; tensor < densities.size(); ++tensor) {
    const ValueId value = staged.values[tensor];
    if (value < 0) continue;
    staged.program.values[static_cast<std::size_t>(value)].density = densities[tensor];
  }
}

}  // namespace

StagedGraph make_stages(const TensorGraph& graph, const std::string& name,
                        const std::vector<TensorId>& roots, const StageOptions& options,
                        const std::vector<TensorId>& beside) {
  StagedGraph staged = Sinking(graph, name, {roots, beside, options, {}, {}}).run();
  if (options.zeros) find_zero_rows(graph, staged);
  expect_zeros(graph, staged);
  return staged;
}

}  // namespace ooc
