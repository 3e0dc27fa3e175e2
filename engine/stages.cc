#include "engine/stages.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/operators.h"
#include "storage/errors.h"

namespace ooc {
namespace {

class StageBuilder {
 public:
  StageBuilder(const TensorGraph& graph, const std::vector<TensorId>& roots)
      : graph_(graph), roots_(roots), tensor_stage_(graph.tensors().size(), 0) {}

  StagedGraph build(const std::string& name) {
    find_needed();
    assign_stages();
    choose_kept();
    staged_.program.name = name;
    staged_.program.real = graph_.real();
    staged_.values.assign(graph_.tensors().size(), -1);
    for (const Operation* operation : needed_) emit(*operation);
    for (const TensorId root : roots_) {
      if (graph_.shape(root).space == Space::kVertex) {
        staged_.program.outputs.push_back(staged_.value(root));
      }
    }
    return std::move(staged_);
  }

 private:
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  bool from_outside(TensorId id) const { return tensor(id).producer < 0; }
  const Operation& producer(TensorId id) const {
    return graph_.operations()[static_cast<std::size_t>(tensor(id).producer)];
  }
  int& stage_of(TensorId id) { return tensor_stage_[static_cast<std::size_t>(id)]; }

  void find_needed() {
    std::set<TensorId> wanted(roots_.begin(), roots_.end());
    for (auto it = graph_.operations().rbegin(); it != graph_.operations().rend(); ++it) {
      if (!wanted.contains(it->output)) continue;
      needed_.push_back(&*it);
      wanted.insert(it->inputs.begin(), it->inputs.end());
    }
    std::reverse(needed_.begin(), needed_.end());
  }

  void assign_stages() {
    int stages = 0;
    for (const Operation* operation : needed_) {
      int earliest = 0;
      for (const TensorId input : operation->inputs) {
        if (from_outside(input)) continue;
        // A reduction is complete only when its stage is.
        const bool complete_after = graph_.shape(input).space == Space::kReduction;
        earliest = std::max(earliest, stage_of(input) + (complete_after ? 1 : 0));
      }
      const bool along_edges = operation->def->dependence == Dependence::kAlongEdges;
      stage_of(operation->output) = along_edges ? std::max(stages, earliest + 1) : earliest;
      stages = std::max(stages, stage_of(operation->output) + 1);
    }
    staged_.program.stages.resize(static_cast<std::size_t>(stages));
  }

  // Which vertex tensors are kept for later stages, in order, so that an operator's inputs are
  // decided before it.
  void choose_kept() {
    std::vector<int> last_use(graph_.tensors().size(), -1);
    for (const Operation* operation : needed_) {
      const bool along_edges = operation->def->dependence == Dependence::kAlongEdges;
      for (const TensorId input : operation->inputs) {
        int& last = last_use[static_cast<std::size_t>(input)];
        last = std::max(last, stage_of(operation->output));
        if (along_edges) kept_.insert(input);
        if (stage_of(input) == stage_of(operation->output)) used_at_once_.insert(input);
      }
      if (along_edges) kept_.insert(operation->output);
    }
    for (const TensorId root : roots_) {
      OOC_CHECK(!from_outside(root));
      kept_.insert(root);
    }
    for (const Operation* operation : needed_) {
      const TensorId output = operation->output;
      const bool crosses = last_use[static_cast<std::size_t>(output)] > stage_of(output);
      if (crosses && !can_recompute(*operation)) kept_.insert(output);
    }
  }

  bool can_recompute(const Operation& operation) const {
    return operation.def->recompute &&
           std::all_of(operation.inputs.begin(), operation.inputs.end(), [&](TensorId input) {
             return from_outside(input) || kept_.contains(input) ||
                    graph_.shape(input).space == Space::kReduction;
           });
  }

  ValueId add_value(TensorId id) {
    const TensorShape& shape = graph_.shape(id);
    Value value{tensor(id).name, ValueKind::kVertex, shape.rows, shape.cols, shape.dtype};
    if (shape.space == Space::kParameter) value.kind = ValueKind::kParameter;
    if (shape.space == Space::kReduction) value.kind = ValueKind::kReduction;
    if (shape.space == Space::kVertex && from_outside(id)) value.kind = ValueKind::kInput;
    staged_.program.values.push_back(std::move(value));
    return static_cast<ValueId>(staged_.program.values.size()) - 1;
  }

  ValueId value_of(TensorId id) {
    ValueId& value = staged_.values[static_cast<std::size_t>(id)];
    if (value < 0) value = add_value(id);
    return value;
  }

  // The value of a tensor as a step of `stage` reads it; where it isn't kept, computed again there.
  ValueId value_in(TensorId id, int stage) {
    const bool here = from_outside(id) || stage_of(id) == stage || kept_.contains(id) ||
                      graph_.shape(id).space != Space::kVertex;
    if (here) return value_of(id);
    const auto found = again_.find({id, stage});
    if (found != again_.end()) return found->second;
    const ValueId value = add_value(id);
    again_[{id, stage}] = value;
    add_step(producer(id), stage, value);
    return value;
  }

  void add_step(const Operation& operation, int stage, ValueId output) {
    RowStep step;
    step.op = operation.def->name;
    step.attributes = operation.attributes;
    for (const TensorId input : operation.inputs) step.inputs.push_back(value_in(input, stage));
    step.outputs = {output};
    staged_.program.stages[static_cast<std::size_t>(stage)].steps.push_back(std::move(step));
  }

  void emit(const Operation& operation) {
    const int index = stage_of(operation.output);
    Stage& stage = staged_.program.stages[static_cast<std::size_t>(index)];
    if (operation.def->dependence != Dependence::kAlongEdges) {
      // What only later stages read, and compute again, isn't computed here.
      const bool reduces = operation.def->dependence == Dependence::kReduction;
      if (!reduces && !kept_.contains(operation.output) &&
          !used_at_once_.contains(operation.output)) {
        return;
      }
      if (stage.name.empty()) stage.name = "rows of " + tensor(operation.output).name;
      add_step(operation, index, value_of(operation.output));
      return;
    }
    stage.name = tensor(operation.output).name;
    OOC_CHECK(!stage.propagation);
    stage.propagation = Propagation{operation.direction, "sum", value_of(operation.inputs[0]),
                                    value_of(operation.output)};
  }

  const TensorGraph& graph_;
  const std::vector<TensorId>& roots_;
  std::vector<int> tensor_stage_;
  std::vector<const Operation*> needed_;
  std::set<TensorId> kept_;
  std::set<TensorId> used_at_once_;  // by an operation of their own stage
  std::map<std::pair<TensorId, int>, ValueId> again_;
  StagedGraph staged_;
};

}  // namespace

StagedGraph make_stages(const TensorGraph& graph, const std::string& name,
                        const std::vector<TensorId>& roots) {
  return StageBuilder(graph, roots).build(name);
}

}  // namespace ooc
