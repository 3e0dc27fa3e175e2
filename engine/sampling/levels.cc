#include "engine/sampling/levels.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/graph/operators.h"
#include "engine/sampling/sampled_sums.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr int kUnread = -1;

// By tensor, what operations need of it.
class NeededLevels {
 public:
  NeededLevels(const TensorGraph& graph, const std::vector<TensorId>& roots)
      : graph_(graph), rows_(graph.tensors().size(), kUnread), edges_(graph.tensors().size()) {
    for (const TensorId root : roots) need(root, 0);
    const std::vector<Operation>& operations = graph.operations();
    for (auto it = operations.rbegin(); it != operations.rend(); ++it) visit(*it);
  }

  // The highest level of vertex tensors, and of the rows that reductions sum up. kUnread: dead.
  int of_rows(TensorId id) const { return rows_[static_cast<std::size_t>(id)]; }
  // The level of what an operation reads, to make rows of this one.
  static int of_inputs(const Operation& operation, int level) {
    if (operation.def->name == "source") return level + 1;
    const bool to_sources = operation.def->dependence == Dependence::kAlongEdges &&
                            operation.direction == Direction::kOut;
    return to_sources ? level - 1 : level;
  }

 private:
  int& rows(TensorId id) { return rows_[static_cast<std::size_t>(id)]; }

  void need(TensorId id, int level) {
    if (graph_.shape(id).space == Space::kEdge) {
      edges_[static_cast<std::size_t>(id)].insert(level);
    } else {
      rows(id) = std::max(rows(id), level);
    }
  }

  void visit(const Operation& operation) {
    if (graph_.shape(operation.output).space == Space::kEdge) {
      for (const int level : edges_[static_cast<std::size_t>(operation.output)]) {
        need_inputs(operation, level);
      }
      return;
    }
    int level = rows(operation.output);
    for (const TensorId state : operation.states) level = std::max(level, rows(state));
    if (level == kUnread) return;
    level = std::max(level, -of_inputs(operation, 0));  // seeds have no sampled out-edges
    rows(operation.output) = level;
    for (const TensorId state : operation.states) rows(state) = level;
    need_inputs(operation, level);
  }

  void need_inputs(const Operation& operation, int level) {
    for (const TensorId input : operation.inputs) need(input, of_inputs(operation, level));
  }

  const TensorGraph& graph_;
  std::vector<int> rows_;
  std::vector<std::set<int>> edges_;
};

// Edge tensors are made for every level that a gather needs; of vertex tensors there are the first
// rows.
class LevelRewrite {
 public:
  LevelRewrite(const TensorGraph& old, const std::vector<TensorId>& roots)
      : old_(old),
        levels_(old, roots),
        out_{TensorGraph(old.real()), std::vector<TensorId>(old.tensors().size(), -1)} {}

  Rewritten run() {
    for (std::size_t id = 0; id < out_.tensors.size(); ++id) {
      Tensor leaf = old_.tensors()[id];
      if (leaf.producer >= 0 || leaf.shape.space == Space::kEdge) continue;
      if (leaf.shape.space == Space::kVertex) {
        leaf.shape.level = levels_.of_rows(static_cast<TensorId>(id));
        if (leaf.shape.level == kUnread) continue;
      }
      out_.tensors[id] = graph().add_like(leaf);
    }
    for (const Operation& operation : old_.operations()) {
      if (old_.shape(operation.output).space == Space::kEdge) continue;
      const int level = levels_.of_rows(operation.output);
      if (level != kUnread) make(operation, level);
    }
    return std::move(out_);
  }

 private:
  TensorGraph& graph() { return out_.graph; }
  TensorId& made(TensorId old_id) { return out_.tensors[static_cast<std::size_t>(old_id)]; }

  void make(const Operation& old, int level) {
    const Operation& like =
        graph().add_like(old, inputs_of(old, level), old_.tensor(old.output).name);
    made(old.output) = like.output;
    for (std::size_t i = 0; i < like.states.size(); ++i) made(old.states[i]) = like.states[i];
  }

  std::vector<TensorId> inputs_of(const Operation& old, int level) {
    std::vector<TensorId> inputs;
    for (const TensorId input : old.inputs) {
      inputs.push_back(at(input, NeededLevels::of_inputs(old, level)));
    }
    return inputs;
  }

  // A tensor with the rows of a level.
  TensorId at(TensorId old_id, int level) {
    const Space space = old_.shape(old_id).space;
    if (!has_rows(space)) return made(old_id);
    if (space == Space::kVertex && level == levels_.of_rows(old_id)) return made(old_id);
    const auto found = at_.find({old_id, level});
    if (found != at_.end()) return found->second;
    const TensorId id =
        space == Space::kVertex ? graph().first_rows(made(old_id), level) : edges_at(old_id, level);
    return at_[{old_id, level}] = id;
  }

  TensorId edges_at(TensorId old_id, int level) {
    Tensor leaf = old_.tensor(old_id);
    if (leaf.producer < 0) {
      leaf.shape.level = level;
      return graph().add_like(leaf);
    }
    const Operation& old = old_.operations()[static_cast<std::size_t>(leaf.producer)];
    return graph().add_like(old, inputs_of(old, level), leaf.name).output;
  }

  const TensorGraph& old_;
  NeededLevels levels_;
  Rewritten out_;
  std::map<std::pair<TensorId, int>, TensorId> at_;
};

// The deepest level that is read: edges into a level come from the next one.
int deepest(const TensorGraph& graph) {
  int level = 0;
  for (const Tensor& tensor : graph.tensors()) {
    const int deeper = tensor.shape.space == Space::kEdge ? 1 : 0;
    if (has_rows(tensor.shape.space)) level = std::max(level, tensor.shape.level + deeper);
  }
  return level;
}

}  // namespace

Rewritten give_levels(const TensorGraph& graph, const std::vector<TensorId>& roots) {
  return LevelRewrite(graph, roots).run();
}

BatchModel batch_model(Model model) {
  Precomputed precomputed;
  Gradients none;
  const auto apply = [&](Rewritten graph) {
    model = rewritten(std::move(model), none, std::move(graph));
  };
  precomputed.graph = std::make_shared<const TensorGraph>(model.graph);
  precomputed.zero_factors = std::exchange(model.zero_factors, -1);
  apply(hoist_constants(model.graph, precomputed.tensors, Hoist::kCarried));
  apply(scale_sampled_sums(model.graph));
  apply(give_levels(model.graph, {model.loss, model.logits}));
  std::erase_if(precomputed.tensors,
                [&](const Hoisted& hoisted) { return !model.graph.has_input(hoisted.input); });
  std::erase(model.layers, -1);
  const int hops = deepest(model.graph);
  return {std::move(model), hops, std::move(precomputed)};
}

}  // namespace ooc
