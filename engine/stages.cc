#include "engine/stages.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "engine/operators.h"
#include "engine/stage_builder.h"
#include "engine/zero_rows.h"

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
// what they make for others.
std::int64_t kept_bytes(const Program& program) {
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

// Has operations wait for those that read what they make, where that keeps fewer bytes: a product
// as wide as what it is made of, which is kept anyway, or wider than it.
class Waiting {
 public:
  Waiting(const TensorGraph& graph, const std::string& name, StageRequest request)
      : graph_(graph), name_(name), request_(std::move(request)), readers_(graph.tensors().size()) {
    best_ = *build_stages(graph_, name_, request_);
    least_ = kept_bytes(best_.staged.program);
    for (const Operation* operation : best_.operations) {
      for (const TensorId input : operation->inputs) {
        readers_[static_cast<std::size_t>(input)].push_back(operation);
      }
    }
  }

  StagedGraph run() {
    const std::vector<const Operation*> operations = best_.operations;
    for (auto it = operations.rbegin(); it != operations.rend(); ++it) {
      const bool row_wise = (*it)->def->dependence == Dependence::kRowWise &&
                            graph_.shape((*it)->output).space == Space::kVertex;
      while (row_wise && wait(**it)) {
      }
    }
    return std::move(best_.staged);
  }

 private:
  int stage_of(TensorId id) const { return best_.stages[static_cast<std::size_t>(id)]; }

  // The first stage behind its own that reads what the operation makes, or what its own stage makes
  // of that.
  std::optional<int> next_reader(const Operation& operation) const {
    const int own = stage_of(operation.output);
    std::optional<int> next;
    for (const Operation* reader : readers_[static_cast<std::size_t>(operation.output)]) {
      const bool here = stage_of(reader->output) == own;
      const std::optional<int> stage = here ? next_reader(*reader) : stage_of(reader->output);
      if (stage && (!next || *stage < *next)) next = stage;
    }
    return next;
  }

  // False: it is as good where it is.
  bool wait(const Operation& operation) {
    const std::optional<int> next = next_reader(operation);
    if (!next) return false;
    StageRequest request = request_;
    request.not_before[operation.output] = *next;
    std::optional<BuiltStages> built = build_stages(graph_, name_, request);
    if (!built) return false;
    const std::int64_t bytes = kept_bytes(built->staged.program);
    if (bytes >= least_) return false;
    request_ = std::move(request);
    best_ = std::move(*built);
    least_ = bytes;
    return true;
  }

  const TensorGraph& graph_;
  const std::string& name_;
  StageRequest request_;
  BuiltStages best_;
  std::int64_t least_ = 0;
  std::vector<std::vector<const Operation*>> readers_;  // by tensor
};

// Which edges the propagations may pass over.
void find_splits(const TensorGraph& graph, StagedGraph& staged) {
  Program& program = staged.program;
  std::vector<ValueId> zero(program.values.size(), -1);
  const std::vector<TensorId> tensors = zero_outside_train(graph);
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const ValueId value = staged.values[tensor];
    if (value < 0 || tensors[tensor] < 0) continue;
    zero[static_cast<std::size_t>(value)] = staged.value(tensors[tensor]);
  }
  for (Stage& stage : program.stages) {
    if (stage.propagation) {
      stage.propagation->splits = splits_of_edges(program, *stage.propagation, zero);
    }
  }
}

}  // namespace

StagedGraph make_stages(const TensorGraph& graph, const std::string& name,
                        const std::vector<TensorId>& roots, const StageOptions& options,
                        const std::vector<TensorId>& beside) {
  StagedGraph staged = Waiting(graph, name, {roots, beside, options, {}}).run();
  if (options.zeros) find_splits(graph, staged);
  return staged;
}

}  // namespace ooc
