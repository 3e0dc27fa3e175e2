#include "engine/sampling/sampled_sums.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/edge_operators.h"
#include "engine/graph/row_operators.h"
#include "engine/rewrite/graph_rebuilder.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

// Ids are of the old graph where their names say so, as in GraphRebuilder.
class SampledSums {
 public:
  explicit SampledSums(const TensorGraph& old) : old_(old), rebuilder_(old) {}

  Rewritten run() {
    for (const Operation& operation : old_.operations()) {
      if (is_sampled_sum(operation)) {
        rebuilder_.set(operation.output, scaled_sum(operation));
      } else {
        rebuilder_.copy(operation);
      }
    }
    return rebuilder_.finish();
  }

 private:
  TensorGraph& graph() { return rebuilder_.graph(); }
  bool from_outside(TensorId old_id) const { return old_.tensor(old_id).producer < 0; }
  const Operation& producer(TensorId old_id) const {
    return old_.operations()[static_cast<std::size_t>(old_.tensor(old_id).producer)];
  }

  bool is_sampled_sum(const Operation& operation) const {
    return operation.def->name == "gather_sum" && operation.direction == Direction::kIn &&
           old_.shape(operation.output).dtype == old_.real();
  }

  TensorId scaled_sum(const Operation& gather) {
    const TensorId old_edges = gather.inputs[0];
    const std::string& name = old_.tensor(gather.output).name;
    const bool loops = old_.shape(old_edges).loops;
    const TensorId sampled = gather_sum(
        graph(), loops ? without_loops(old_edges) : rebuilder_.at(old_edges), name + ".sampled");
    TensorId scale = graph().input(kSampleScaleInput, 1, old_.real());
    if (!loops) return graph().apply("scale_rows", {sampled, scale}, {}, name);
    TensorId rest = -1;
    if (moves_to_vertices(old_edges)) {
      rest = graph().apply("scale_rows", {at_loops(old_edges), added_loops()});
    } else {  // of all edges once, and of those that aren't loops scale - 1 times more
      rest = gather_sum(graph(), rebuilder_.at(old_edges));
      scale = graph().apply("affine", {scale}, {.value = 1, .shift = -1});
    }
    return graph().apply("add", {graph().apply("scale_rows", {sampled, scale}), rest}, {}, name);
  }

  // 1 where gathers add a loop, 0 where the data has one or several.
  TensorId added_loops() {
    if (added_loops_ < 0) {
      const TensorId factor = degree_factor(graph(), DegreeFactor::kLoop);
      added_loops_ = graph().apply("relu", {factor}, {}, "added_loops");
    }
    return added_loops_;
  }

  // An edge tensor for the edges of the data alone.
  TensorId without_loops(TensorId old_id) {
    if (old_.shape(old_id).space != Space::kEdge) return rebuilder_.at(old_id);
    const auto found = without_loops_.find(old_id);
    if (found != without_loops_.end()) return found->second;
    TensorId made = -1;
    if (from_outside(old_id)) {
      const Tensor& leaf = old_.tensor(old_id);
      made = graph().edge_input(leaf.name, leaf.shape.cols, leaf.shape.dtype);
    } else {
      Operation operation = producer(old_id);
      operation.loops = false;
      std::vector<TensorId> inputs;
      for (const TensorId input : operation.inputs) inputs.push_back(without_loops(input));
      made = rebuilder_.add(operation, std::move(inputs), "");
    }
    return without_loops_[old_id] = made;
  }

  static bool picks_type(const Operation& operation) { return operation.def->name == "pick_type"; }

  // Whether an edge tensor's values at loops can be computed at vertices.
  bool moves_to_vertices(TensorId old_id) const {
    const Tensor& tensor = old_.tensor(old_id);
    if (tensor.shape.space != Space::kEdge) return true;
    if (from_outside(old_id)) {
      return tensor.name == kEdgeWeightsInput || tensor.name == kEdgeFeaturesInput;
    }
    const Operation& operation = producer(old_id);
    if (operation.def->dependence == Dependence::kToEdges) return true;
    const std::string& name = operation.def->name;
    if (name == "edge_key" || name == "winner_key" || name == "edge_dropout") return false;
    const auto end = picks_type(operation) ? operation.inputs.begin() + 1 : operation.inputs.end();
    return std::all_of(operation.inputs.begin(), end,
                       [&](TensorId input) { return moves_to_vertices(input); });
  }

  // An edge tensor's values at loops: both ends are the vertex, the weight is 1, type and features
  // are 0.
  TensorId at_loops(TensorId old_id) {
    const Tensor& tensor = old_.tensor(old_id);
    if (tensor.shape.space != Space::kEdge) return rebuilder_.at(old_id);
    const auto found = at_loops_.find(old_id);
    if (found != at_loops_.end()) return found->second;
    return at_loops_[old_id] = from_outside(old_id) ? constant(tensor) : at_loops(producer(old_id));
  }

  TensorId at_loops(const Operation& operation) {
    if (operation.def->dependence == Dependence::kToEdges) {
      return rebuilder_.uncopied(rebuilder_.at(operation.inputs[0]));
    }
    const TensorId first = at_loops(operation.inputs[0]);
    if (picks_type(operation)) {
      return graph().apply("columns", {first}, {.begin = 0, .cols = operation.attributes.cols});
    }
    const bool weighted = operation.def->name == "scale_rows" &&
                          old_.tensor(operation.inputs[1]).name == kEdgeWeightsInput;
    if (weighted) return first;
    std::vector<TensorId> inputs;
    for (const TensorId input : operation.inputs) inputs.push_back(at_loops(input));
    return rebuilder_.add(operation, std::move(inputs), "");
  }

  // What a loop carries, at every vertex.
  TensorId constant(const Tensor& leaf) {
    const double value = leaf.name == kEdgeWeightsInput ? 1 : 0;
    const TensorId column = graph().apply("affine", {added_loops()}, {.value = 0, .shift = value});
    if (leaf.shape.cols == 1) return column;
    return graph().apply("head_broadcast", {column}, {.cols = leaf.shape.cols});
  }

  const TensorGraph& old_;
  GraphRebuilder rebuilder_;
  std::map<TensorId, TensorId> without_loops_, at_loops_;
  TensorId added_loops_ = -1;
};

}  // namespace

Rewritten scale_sampled_sums(const TensorGraph& graph) { return SampledSums(graph).run(); }

}  // namespace ooc
