// Transform first or aggregate first: a matmul and a propagation commute where everything between
// them is linear and works column by column.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "engine/graph/zero_rows.h"
#include "engine/rewrite/graph_rebuilder.h"
#include "engine/rewrite/rewrites.h"

namespace ooc {
namespace {

// Tensors between `begin` and `end`, both among them: each but `begin` is a linear, column by
// column function of others of the region, and nothing outside reads any but `end`.
struct Region {
  TensorId begin = -1;
  TensorId end = -1;
  std::vector<const Operation*> operations;  // in order
  std::int64_t gathers = 0;
};

class Regions {
 public:
  explicit Regions(const TensorGraph& graph) : graph_(graph), readers_(graph.tensors().size()) {
    for (const Operation& operation : graph.operations()) {
      for (const TensorId input : operation.inputs) {
        readers_[static_cast<std::size_t>(input)].push_back(&operation);
      }
    }
  }

  // The largest that starts at `begin`.
  std::optional<Region> from(TensorId begin) const {
    std::set<TensorId> inside{begin};
    Region region{begin, -1, {}, 0};
    for (const Operation& operation : graph_.operations()) {
      if (!is_linear_in(operation, inside)) continue;
      inside.insert(operation.output);
      region.operations.push_back(&operation);
    }
    return closed(std::move(region), inside);
  }

  // The largest that ends at `end`, which one operation reads, and starts at one tensor, whoever
  // else reads that.
  std::optional<Region> up_to(TensorId end) const {
    if (readers_[static_cast<std::size_t>(end)].size() != 1) return std::nullopt;
    std::set<TensorId> inside{end};
    std::set<TensorId> leaves;
    Region region{-1, end, {}, 0};
    for (auto it = graph_.operations().rbegin(); it != graph_.operations().rend(); ++it) {
      if (!inside.contains(it->output)) continue;
      if (!is_linear(*it) || !only_read_inside(it->output, end, inside)) {
        leaves.insert(it->output);
        continue;
      }
      region.operations.push_back(&*it);
      for (const TensorId input : linear_inputs(*it)) inside.insert(input);
    }
    for (const TensorId id : inside) {
      if (graph_.tensor(id).producer < 0) leaves.insert(id);
    }
    // A matmul of what differs from edge to edge would be done once an edge.
    if (leaves.size() != 1 || graph_.shape(*leaves.begin()).space != Space::kVertex) {
      return std::nullopt;
    }
    region.begin = *leaves.begin();
    std::reverse(region.operations.begin(), region.operations.end());
    return with_gathers(std::move(region));
  }

 private:
  static std::vector<TensorId> linear_inputs(const Operation& operation) {
    const auto begin = operation.inputs.begin();
    return {begin, begin + operation.def->linear};
  }
  static bool is_linear(const Operation& operation) {
    return operation.def->linear > 0 && operation.attributes.shift == 0;
  }
  static bool is_linear_in(const Operation& operation, const std::set<TensorId>& inside) {
    if (!is_linear(operation)) return false;
    const auto linear = static_cast<std::size_t>(operation.def->linear);
    for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
      if (inside.contains(operation.inputs[i]) != (i < linear)) return false;
    }
    return true;
  }

  bool only_read_inside(TensorId id, TensorId end, const std::set<TensorId>& inside) const {
    if (id == end) return true;
    const auto& readers = readers_[static_cast<std::size_t>(id)];
    return std::all_of(readers.begin(), readers.end(), [&](const Operation* reader) {
      return inside.contains(reader->output) && is_linear(*reader);
    });
  }

  // The region if only one of its tensors is read outside.
  std::optional<Region> closed(Region region, const std::set<TensorId>& inside) const {
    for (const TensorId id : inside) {
      const auto& readers = readers_[static_cast<std::size_t>(id)];
      const bool outside = readers.empty() || std::any_of(readers.begin(), readers.end(),
                                                          [&](const Operation* reader) {
                                                            return !inside.contains(reader->output);
                                                          });
      if (!outside) continue;
      if (region.end >= 0) return std::nullopt;
      region.end = id;
    }
    return with_gathers(std::move(region));
  }

  std::optional<Region> with_gathers(Region region) const {
    region.gathers = std::count_if(region.operations.begin(), region.operations.end(),
                                   [](const Operation* operation) {
                                     return operation->def->dependence == Dependence::kAlongEdges;
                                   });
    if (region.gathers == 0) return std::nullopt;
    return region;
  }

  const TensorGraph& graph_;
  std::vector<std::vector<const Operation*>> readers_;
};

// Moves one matmul across one region where that propagates less.
class Reorder {
 public:
  Reorder(const TensorGraph& graph, bool can_hoist)
      : graph_(graph),
        can_hoist_(can_hoist),
        constants_(graph),
        densities_(expected_densities(graph)),
        regions_(graph) {}

  std::optional<Rewritten> once() const {
    for (const Operation& matmul : graph_.operations()) {
      if (matmul.def->name != "matmul" || matmul.attributes.transpose) continue;
      if (graph_.shape(matmul.output).space != Space::kVertex) continue;
      const auto following = regions_.from(matmul.output);
      if (following && aggregating(*following, matmul.inputs[0]) < transforming(matmul)) {
        return aggregate_first(matmul, *following);
      }
      const auto before = regions_.up_to(matmul.inputs[0]);
      if (before && is_better_first(matmul, *before)) return transform_first(matmul, *before);
    }
    return std::nullopt;
  }

  // Where no more columns are propagated then, and fewer elements that aren't zero. Not where a
  // factor is trained: backward reads what lies between, evaluation doesn't, and both go one way.
  std::optional<Rewritten> once_for_zeros() const {
    const auto others = [&](TensorId id) {
      return static_cast<double>(graph_.shape(id).cols) * density(id);
    };
    for (const Operation& matmul : graph_.operations()) {
      if (matmul.def->name != "matmul") continue;
      if (graph_.shape(matmul.output).space != Space::kVertex) continue;
      const TensorId rows = matmul.inputs[0];
      if (graph_.shape(rows).cols > graph_.shape(matmul.output).cols) continue;
      if (others(rows) >= others(matmul.output)) continue;
      const auto following = regions_.from(matmul.output);
      if (following && !is_factor_trained(*following)) return aggregate_first(matmul, *following);
    }
    return std::nullopt;
  }

 private:
  // With as many columns either way it is first after an activation: the gradient of the product,
  // which backward propagates then, likely comes out of one, too, while that of its operand has no
  // zeros. Forward is decided after that (gather_sparse_rows()).
  bool is_better_first(const Operation& matmul, const Region& before) const {
    const double last = aggregating(before, before.begin);
    if (transforming(matmul) != last) return transforming(matmul) < last;
    return graph_.tensor(before.begin).needs_gradient && !is_factor_trained(before) &&
           density(before.begin) < 1;
  }

  double density(TensorId id) const { return densities_[static_cast<std::size_t>(id)]; }

  // Whether some factor that the region multiplies by is such.
  template <class Is>
  static bool has_factor(const Region& region, Is&& is) {
    return std::any_of(region.operations.begin(), region.operations.end(),
                       [&](const Operation* operation) {
                         return std::any_of(operation->inputs.begin() + operation->def->linear,
                                            operation->inputs.end(), is);
                       });
  }
  bool is_factor_trained(const Region& region) const {
    return has_factor(region,
                      [&](TensorId factor) { return graph_.tensor(factor).needs_gradient; });
  }

  // Columns propagated in an epoch, forward and backward, with the matmul first: the gradient of
  // its weights wants the propagation's.
  double transforming(const Operation& matmul) const {
    return 2.0 * static_cast<double>(graph_.shape(matmul.output).cols);
  }
  // With it last, over `begin`: backward where that wants a gradient, or a factor on the way does.
  // Where nothing changes from one epoch to the next once a run is enough: shared among as many
  // epochs as a short run has.
  double aggregating(const Region& region, TensorId begin) const {
    constexpr double kEpochs = 100;
    const bool once =
        can_hoist_ && constants_.contains(begin) &&
        !has_factor(region, [&](TensorId factor) { return !constants_.contains(factor); });
    const bool backward = graph_.tensor(begin).needs_gradient || is_factor_trained(region);
    return static_cast<double>(graph_.shape(begin).cols) *
           ((once ? 1 / kEpochs : 1) + (backward ? 1 : 0));
  }

  // The region's operations over `begin` instead of its own beginning.
  static TensorId rebuild(GraphRebuilder& rebuilder, const Region& region, TensorId begin) {
    std::map<TensorId, TensorId> made{{region.begin, begin}};
    for (const Operation* operation : region.operations) {
      std::vector<TensorId> inputs;
      for (const TensorId input : operation->inputs) {
        const auto found = made.find(input);
        inputs.push_back(found != made.end() ? found->second : rebuilder.at(input));
      }
      made[operation->output] = rebuilder.add(*operation, std::move(inputs), "");
    }
    return made.at(region.end);
  }

  Rewritten aggregate_first(const Operation& matmul, const Region& region) const {
    GraphRebuilder rebuilder(graph_);
    for (const Operation& operation : graph_.operations()) {
      rebuilder.copy(operation);
      if (operation.output != region.end) continue;
      const TensorId begin = rebuilder.uncopied(rebuilder.at(matmul.inputs[0]));
      const TensorId aggregated = rebuild(rebuilder, region, begin);
      rebuilder.set(region.end, rebuilder.add(matmul, {aggregated, rebuilder.at(matmul.inputs[1])},
                                              graph_.tensor(region.end).name));
    }
    return rebuilder.finish();
  }

  Rewritten transform_first(const Operation& matmul, const Region& region) const {
    GraphRebuilder rebuilder(graph_);
    for (const Operation& operation : graph_.operations()) {
      if (operation.output != matmul.output) {
        rebuilder.copy(operation);
        continue;
      }
      const TensorId begin = rebuilder.uncopied(rebuilder.at(region.begin));
      const TensorId transformed =
          rebuilder.add(matmul, {begin, rebuilder.at(matmul.inputs[1])}, "");
      rebuilder.set(matmul.output, rebuild(rebuilder, region, transformed));
    }
    return rebuilder.finish();
  }

  const TensorGraph& graph_;
  bool can_hoist_;
  Constants constants_;
  std::vector<double> densities_;
  Regions regions_;
};

}  // namespace

namespace {

// Step by step, as long as there is one; each makes less of something, so this ends. The bound
// keeps a mistake from looping.
Rewritten reorder(const TensorGraph& graph, const std::vector<TensorId>& roots,
                  const std::function<std::optional<Rewritten>(const TensorGraph&)>& once) {
  Rewritten result = drop_dead(graph, roots);
  const auto then = [&](Rewritten next) {
    for (TensorId& id : result.tensors) id = next.at(id);
    result.graph = std::move(next.graph);
  };
  for (std::size_t step = 0; step < graph.operations().size(); ++step) {
    std::optional<Rewritten> next = once(result.graph);
    if (!next) break;
    then(std::move(*next));
    std::vector<TensorId> wanted;
    for (const TensorId root : roots) wanted.push_back(result.at(root));
    then(drop_dead(result.graph, wanted));
  }
  return result;
}

}  // namespace

Rewritten order_matmuls(const TensorGraph& graph, const std::vector<TensorId>& roots,
                        bool can_hoist) {
  return reorder(graph, roots,
                 [&](const TensorGraph& of) { return Reorder(of, can_hoist).once(); });
}

Rewritten gather_sparse_rows(const TensorGraph& graph, const std::vector<TensorId>& roots) {
  return reorder(graph, roots,
                 [](const TensorGraph& of) { return Reorder(of, false).once_for_zeros(); });
}

}  // namespace ooc
