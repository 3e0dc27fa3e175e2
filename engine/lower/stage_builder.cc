#include "engine/lower/stage_builder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/graph/edge_operators.h"
#include "engine/graph/operators.h"
#include "engine/lower/rematerialized.h"
#include "engine/lower/slices.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

class StageBuilder {
 public:
  StageBuilder(const TensorGraph& graph, const StageRequest& request)
      : graph_(graph),
        roots_(request.roots),
        options_(request.options),
        not_before_(request.not_before),
        kept_by_request_(request.kept),
        tensor_stage_(graph.tensors().size(), 0) {
    for (const Operation* operation : live_operations(graph_, roots_)) inside_.insert(operation);
    roots_.insert(roots_.end(), request.beside.begin(), request.beside.end());
    needed_ = live_operations(graph_, roots_);
  }

  std::optional<BuiltStages> build(const std::string& name) {
    for (const Operation* operation : needed_) assign_stage(*operation);
    for (const Operation* operation : needed_) {
      if (!sink(*operation)) return std::nullopt;
    }
    choose_kept();
    staged_.program.name = name;
    staged_.program.real = graph_.real();
    staged_.values.assign(graph_.tensors().size(), -1);
    for (const Operation* operation : needed_) emit(*operation);
    // What a later stage computes again may have had one to itself.
    std::erase_if(staged_.program.stages,
                  [](const Stage& stage) { return !stage.propagation && stage.steps.empty(); });
    std::vector<TensorId> again = add_rematerialized();
    for (Stage& stage : staged_.program.stages) {
      if (!stage.propagation) continue;
      stage.propagation->slice_local_cols = slice_local_cols(staged_.program, *stage.propagation);
    }
    for (const TensorId root : roots_) {
      if (graph_.shape(root).space == Space::kVertex) {
        staged_.program.outputs.push_back(staged_.value(root));
      }
    }
    return BuiltStages{std::move(staged_), std::move(tensor_stage_), std::move(needed_),
                       std::move(again)};
  }

 private:
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  Space space(TensorId id) const { return graph_.shape(id).space; }
  bool from_outside(TensorId id) const { return tensor(id).producer < 0; }
  const Operation& producer(TensorId id) const {
    return graph_.operations()[static_cast<std::size_t>(tensor(id).producer)];
  }
  int& stage_of(TensorId id) { return tensor_stage_[static_cast<std::size_t>(id)]; }
  Stage& stage_at(int index) { return staged_.program.stages[static_cast<std::size_t>(index)]; }

  // A gather, or a sum over all edges.
  bool folds_edges(const Operation& operation) const {
    return space(operation.output) != Space::kEdge &&
           std::any_of(operation.inputs.begin(), operation.inputs.end(),
                       [&](TensorId input) { return space(input) == Space::kEdge; });
  }

  static bool changes_level(const Operation& operation) { return operation.level != kAllRows; }

  // The first stage from `earliest` with rows of this level; their number if there is none.
  int stage_with(int level, int earliest) const {
    const auto found = std::find(levels_.begin() + std::min<std::ptrdiff_t>(earliest, count()),
                                 levels_.end(), level);
    return static_cast<int>(found - levels_.begin());
  }
  std::ptrdiff_t count() const { return std::ssize(levels_); }

  // The first stage that may read the tensor: as a row beside others, or by its number, as edges
  // and rows of another level do. A reduction is complete only when its stage is, and a vertex
  // tensor when its last row is.
  int ready(TensorId id, bool by_number) {
    if (from_outside(id) || space(id) == Space::kParameter) return 0;
    if (space(id) == Space::kEdge) return stage_of(id);
    return stage_of(id) + (by_number || space(id) == Space::kReduction ? 1 : 0);
  }

  // Of an edge tensor: the first stage whose propagation may compute it.
  int earliest(const Operation& operation) {
    const bool by_number = space(operation.output) == Space::kEdge || folds_edges(operation) ||
                           changes_level(operation);
    int stage = 0;
    for (const TensorId input : operation.inputs) {
      stage = std::max(stage, ready(input, by_number));
    }
    return stage;
  }

  void assign_stage(const Operation& operation) {
    int stage = earliest(operation);
    if (folds_edges(operation)) {
      stage = propagation_from(stage, operation);
    } else if (space(operation.output) != Space::kEdge) {
      stage = stage_with(rows_level(graph_, operation), stage);
      if (stage == count()) add_stage(rows_level(graph_, operation));
    }
    stage_of(operation.output) = stage;
    for (const TensorId state : operation.states) stage_of(state) = stage;
  }

  Stage& add_stage(int level) {
    levels_.push_back(level);
    return staged_.program.stages.emplace_back();
  }

  // Into a later stage, where it was told to or its inputs sank. Folds can't, and there are no more
  // stages: false.
  bool sink(const Operation& operation) {
    int stage = earliest(operation);
    if (folds_edges(operation)) return stage <= stage_of(operation.output);
    const auto told = not_before_.find(operation.output);
    if (told != not_before_.end()) stage = std::max(stage, told->second);
    if (space(operation.output) != Space::kEdge)
      stage = stage_with(rows_level(graph_, operation), stage);
    stage_of(operation.output) = stage;
    return stage < count();
  }

  // What the folds of one stage have in common. Sums of what edges carry read no rows, and with
  // them no other gather could go slice by slice.
  struct Sharing {
    Direction direction;
    bool loops, beside, carried;
    int level;
    bool operator==(const Sharing&) const = default;
  };
  Sharing sharing_of(const Operation& operation) const {
    const TensorId edges = operation.inputs[0];
    return {operation.direction, graph_.shape(edges).loops, !inside_.contains(&operation),
            operation.inputs.size() == 1 && from_outside(edges), rows_level(graph_, operation)};
  }

  // The first stage from `earliest` that takes the edges this operation needs; a new one if none.
  int propagation_from(int earliest, const Operation& operation) {
    const Sharing sharing = sharing_of(operation);
    for (auto at = sharing_.lower_bound(earliest); options_.share && at != sharing_.end(); ++at) {
      if (at->second == sharing) return at->first;
    }
    const int made = static_cast<int>(count());
    add_stage(sharing.level).propagation = {sharing.direction, sharing.loops, {}, {}, {}};
    sharing_[made] = sharing;
    return made;
  }

  // Which vertex tensors are kept for later stages, in order, so that an operator's inputs are
  // decided before it.
  void choose_kept() {
    std::vector<int> last_use(graph_.tensors().size(), -1);
    for (const Operation* operation : needed_) {
      const bool to_edges = operation->def->dependence == Dependence::kToEdges;
      for (const TensorId input : operation->inputs) {
        if (space(operation->output) == Space::kEdge) {
          if (to_edges) kept_.insert(input);
          continue;
        }
        if (changes_level(*operation) && !from_outside(input)) kept_.insert(input);
        int& last = last_use[static_cast<std::size_t>(input)];
        last = std::max(last, stage_of(operation->output));
      }
      if (operation->def->dependence == Dependence::kAlongEdges) {
        kept_.insert(operation->output);
        kept_.insert(operation->states.begin(), operation->states.end());
      }
    }
    for (const TensorId root : roots_) {
      OOC_CHECK(!from_outside(root));
      kept_.insert(root);
    }
    for (const Operation* operation : needed_) {
      const TensorId output = operation->output;
      if (space(output) != Space::kVertex) continue;
      if (can_recompute(*operation)) {
        recomputable_.insert(output);
        continue;
      }
      const bool crosses = last_use[static_cast<std::size_t>(output)] > stage_of(output);
      if (crosses) kept_.insert(output);
    }
    for (auto it = needed_.rbegin(); it != needed_.rend(); ++it) {
      const Operation& reader = **it;
      if (space(reader.output) == Space::kEdge || !is_made(reader)) continue;
      for (const TensorId input : reader.inputs) {
        if (stage_of(input) == stage_of(reader.output)) used_at_once_.insert(input);
      }
    }
  }

  // Whether it is done in its own stage. What only later stages read, and compute again, isn't.
  bool is_made(const Operation& operation) const {
    return operation.def->dependence == Dependence::kReduction ||
           kept_.contains(operation.output) || used_at_once_.contains(operation.output);
  }

  bool can_recompute(const Operation& operation) const {
    const bool deep =
        options_.recompute == Recompute::kRowWise && !kept_by_request_.contains(operation.output);
    const bool row_wise = operation.def->dependence == Dependence::kRowWise;
    return (operation.def->recompute || (deep && row_wise && !is_narrow(operation))) &&
           std::all_of(operation.inputs.begin(), operation.inputs.end(), [&](TensorId input) {
             return from_outside(input) || kept_.contains(input) ||
                    space(input) == Space::kReduction || is_column_of_data(input) ||
                    (deep && recomputable_.contains(input));
           });
  }

  // Tells the program what later stages compute again; returns what of it isn't cheap.
  std::vector<TensorId> add_rematerialized() {
    std::map<ValueId, Recomputed> again;
    std::set<TensorId> dear;
    for (const auto& [at, value] : again_) {
      const TensorId id = at.first;
      if (space(id) != Space::kVertex) continue;
      const Operation& operation = producer(id);
      again[value] = {is_made(operation) ? value_of(id) : -1, operation.def->recompute};
      if (!operation.def->recompute) dear.insert(id);
    }
    staged_.program.rematerialized = find_rematerialized(staged_.program, again);
    return {dear.begin(), dear.end()};
  }

  std::int64_t row_bytes(TensorId id) const {
    const TensorShape& shape = graph_.shape(id);
    if (shape.space != Space::kVertex) return 0;
    return shape.cols * static_cast<std::int64_t>(dtype_bytes(shape.dtype));
  }

  // Beside what it is made of: writing and reading it is better than reading that again. Signs as
  // bits are, and products with few columns.
  bool is_narrow(const Operation& operation) const {
    constexpr std::int64_t kTimes = 4;
    return std::any_of(operation.inputs.begin(), operation.inputs.end(), [&](TensorId input) {
      return kTimes * row_bytes(operation.output) <= row_bytes(input);
    });
  }

  // Such as a factor of degrees: as good as from outside.
  bool is_column_of_data(TensorId id) const {
    const Operation& operation = producer(id);
    return operation.def->recompute && graph_.shape(id).cols == 1 &&
           std::all_of(operation.inputs.begin(), operation.inputs.end(),
                       [&](TensorId input) { return from_outside(input); });
  }

  ValueId add_value(TensorId id) {
    const TensorShape& shape = graph_.shape(id);
    Value value{tensor(id).name, ValueKind::kVertex, shape.rows, shape.cols, shape.dtype};
    if (shape.space == Space::kEdge) value.kind = ValueKind::kEdge;
    if (shape.space == Space::kParameter) value.kind = ValueKind::kParameter;
    if (shape.space == Space::kReduction) value.kind = ValueKind::kReduction;
    if (shape.space == Space::kVertex && from_outside(id)) value.kind = ValueKind::kInput;
    value.level = shape.level;
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
                      space(id) != Space::kVertex;
    if (here) return value_of(id);
    const auto found = again_.find({id, stage});
    if (found != again_.end()) return found->second;
    const ValueId value = add_value(id);
    again_[{id, stage}] = value;
    add_step(producer(id), stage, value);
    return value;
  }

  // The value of an operand of edge work in the propagation of `stage`.
  ValueId edge_value_in(TensorId id, int stage) {
    if (space(id) != Space::kEdge) return value_of(id);
    const auto found = again_.find({id, stage});
    if (found != again_.end()) return found->second;
    const ValueId value = add_value(id);
    again_[{id, stage}] = value;
    Propagation& work = *stage_at(stage).propagation;
    if (from_outside(id)) {
      work.inputs.push_back({edge_load(tensor(id).name), -1, value});
      return value;
    }
    const Operation& operation = producer(id);
    if (operation.def->dependence == Dependence::kToEdges) {
      const bool at_source = operation.def->name == "source";
      const bool streamed = at_source == (work.direction == Direction::kIn);
      work.inputs.push_back({streamed ? EdgeLoad::kStreamed : EdgeLoad::kResident,
                             value_of(operation.inputs[0]), value});
      return value;
    }
    RowStep step = edge_step(operation, stage);
    step.outputs = {value};
    stage_at(stage).propagation->steps.push_back(std::move(step));
    return value;
  }

  std::vector<ValueId> edge_values_in(const std::vector<TensorId>& ids, int stage) {
    std::vector<ValueId> values;
    for (const TensorId id : ids) values.push_back(edge_value_in(id, stage));
    return values;
  }

  RowStep edge_step(const Operation& operation, int stage) {
    return {operation.def->name, edge_values_in(operation.inputs, stage), {}, operation.attributes};
  }

  // What a gather folds. A sum of products with a number of the edge takes both: the products, as
  // wide as what is summed, are never there.
  const std::vector<TensorId>& folded(const Operation& gather) const {
    const TensorId edges = gather.inputs[0];
    const bool fuses = options_.share && gather.def->fold == Fold::kSum && !from_outside(edges) &&
                       producer(edges).def->name == "scale_rows";
    return fuses ? producer(edges).inputs : gather.inputs;
  }

  void add_step(const Operation& operation, int stage, ValueId output) {
    RowStep step{operation.def->name, {}, {output}, operation.attributes};
    for (const TensorId input : operation.inputs) step.inputs.push_back(value_in(input, stage));
    stage_at(stage).steps.push_back(std::move(step));
  }

  void emit(const Operation& operation) {
    if (space(operation.output) == Space::kEdge) return;
    const int index = stage_of(operation.output);
    if (folds_edges(operation)) return emit_fold(operation, index);
    if (!is_made(operation)) return;
    Stage& stage = stage_at(index);
    if (stage.name.empty() && !stage.propagation)
      stage.name = "rows of " + tensor(operation.output).name;
    add_step(operation, index, value_of(operation.output));
  }

  void emit_fold(const Operation& operation, int index) {
    Stage& stage = stage_at(index);
    if (!stage.propagation->folds.empty() || !stage.propagation->steps.empty()) stage.name += ", ";
    stage.name += tensor(operation.output).name;
    if (operation.def->dependence == Dependence::kReduction) {
      RowStep step = edge_step(operation, index);
      step.outputs = {value_of(operation.output)};
      return stage.propagation->steps.push_back(std::move(step));
    }
    std::vector<ValueId> inputs = edge_values_in(folded(operation), index);
    EdgeFold fold{operation.def->fold, std::move(inputs), {value_of(operation.output)}};
    for (const TensorId state : operation.states) fold.accumulators.push_back(value_of(state));
    stage.propagation->folds.push_back(std::move(fold));
  }

  const TensorGraph& graph_;
  std::vector<TensorId> roots_;
  StageOptions options_;
  const std::map<TensorId, int>& not_before_;
  const std::set<TensorId>& kept_by_request_;
  std::set<const Operation*> inside_;  // for the roots that aren't `beside`
  std::map<int, Sharing> sharing_;     // of the stages with a propagation
  std::vector<int> levels_;            // by stage
  // By tensor: the stage that makes it; of an edge tensor, the first that may compute it.
  std::vector<int> tensor_stage_;
  std::vector<const Operation*> needed_;
  std::set<TensorId> kept_;
  std::set<TensorId> recomputable_;  // from what is kept
  std::set<TensorId> used_at_once_;  // by an operation that is done in their own stage
  std::map<std::pair<TensorId, int>, ValueId> again_;
  StagedGraph staged_;
};

}  // namespace

std::optional<BuiltStages> build_stages(const TensorGraph& graph, const std::string& name,
                                        const StageRequest& request) {
  return StageBuilder(graph, request).build(name);
}

}  // namespace ooc
