#include "engine/rewrite/rewrites.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "engine/rewrite/graph_rebuilder.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

struct Name {
  const char* name;
  bool Rewrites::*member;
};

constexpr Name kNames[] = {
    {"motion", &Rewrites::motion},     {"common", &Rewrites::common}, {"order", &Rewrites::order},
    {"hoisting", &Rewrites::hoisting}, {"dead", &Rewrites::dead},     {"fusion", &Rewrites::fusion},
    {"zeros", &Rewrites::zeros},
};

// Where an edge tensor comes from, if it is a vertex tensor's rows.
struct Origin {
  const Operation* end = nullptr;  // source or destination
  TensorId vertex = -1;
};

// The vertex tensor that every row operand of an operation on edges comes from, by operand; nothing
// if one comes from the other end, or from an edge.
std::optional<std::vector<TensorId>> vertex_inputs(const GraphRebuilder& rebuilder,
                                                   const std::vector<Origin>& origins,
                                                   const Operation& operation,
                                                   const Operation*& end) {
  std::vector<TensorId> inputs;
  for (const TensorId input : operation.inputs) {
    if (rebuilder.old().shape(input).space != Space::kEdge) {
      inputs.push_back(rebuilder.at(input));
      continue;
    }
    const Origin& origin = origins[static_cast<std::size_t>(input)];
    if (origin.end == nullptr) return std::nullopt;
    if (end != nullptr && end->def != origin.end->def) return std::nullopt;
    end = origin.end;
    inputs.push_back(origin.vertex);
  }
  return inputs;
}

}  // namespace

Rewrites parse_rewrites(const std::string& list) {
  Rewrites rewrites;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    const auto found = std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& name) {
      return word == "-" + std::string(name.name);
    });
    if (found == std::end(kNames)) {
      std::string takes;
      for (const Name& name : kNames)
        takes += fmt::format("{}-{}", takes.empty() ? "" : ", ", name.name);
      throw UsageError("wrong value for --rewrites", fmt::format("'{}'", word),
                       fmt::format("switch off any of {}, with commas between", takes));
    }
    rewrites.*(found->member) = false;
  }
  return rewrites;
}

Rewritten move_operators(const TensorGraph& graph) {
  GraphRebuilder rebuilder(graph);
  std::vector<Origin> origins(graph.tensors().size());
  for (const Operation& operation : graph.operations()) {
    Origin& origin = origins[static_cast<std::size_t>(operation.output)];
    if (operation.def->dependence == Dependence::kToEdges) {
      rebuilder.copy(operation);
      origin = {&operation, rebuilder.uncopied(rebuilder.at(operation.inputs[0]))};
      continue;
    }
    const Operation* end = nullptr;
    std::optional<std::vector<TensorId>> inputs;
    if (graph.shape(operation.output).space == Space::kEdge && operation.def->moves) {
      inputs = vertex_inputs(rebuilder, origins, operation, end);
    }
    if (!inputs || end == nullptr) {
      rebuilder.copy(operation);
      continue;
    }
    const TensorId vertex =
        rebuilder.add(operation, std::move(*inputs), graph.tensor(operation.output).name);
    const TensorId edge = rebuilder.add(*end, {vertex}, "");
    rebuilder.set(operation.output, edge);
    origin = {end, vertex};
  }
  return rebuilder.finish();
}

Rewritten merge_common(const TensorGraph& graph) {
  using Key = std::tuple<std::string, std::vector<TensorId>, Direction, bool, int,
                         decltype(Attributes{}.fields())>;
  GraphRebuilder rebuilder(graph);
  std::map<Key, const Operation*> made;
  for (const Operation& operation : graph.operations()) {
    std::vector<TensorId> inputs;
    for (const TensorId input : operation.inputs) inputs.push_back(rebuilder.at(input));
    const Key key{operation.def->name, std::move(inputs), operation.direction,
                  operation.loops,     operation.level,   operation.attributes.fields()};
    const auto [found, first] = made.emplace(key, &operation);
    if (first) {
      rebuilder.copy(operation);
      continue;
    }
    rebuilder.set(operation.output, rebuilder.at(found->second->output));
    for (std::size_t i = 0; i < operation.states.size(); ++i) {
      rebuilder.set(operation.states[i], rebuilder.at(found->second->states[i]));
    }
  }
  return rebuilder.finish();
}

Rewritten drop_dead(const TensorGraph& graph, const std::vector<TensorId>& roots) {
  GraphRebuilder rebuilder(graph);
  for (const Operation* operation : live_operations(graph, roots)) rebuilder.copy(*operation);
  return rebuilder.finish();
}

namespace {

// Says what a tensor is, by operators down to inputs; equal for equal computations.
class Structure {
 public:
  explicit Structure(const TensorGraph& graph) : hashes_(graph.tensors().size()) {
    for (std::size_t id = 0; id < hashes_.size(); ++id) {
      const Tensor& tensor = graph.tensors()[id];
      if (tensor.producer >= 0) continue;
      const TensorShape& shape = tensor.shape;
      hashes_[id] = std::hash<std::string>{}(
          fmt::format("{} {} {} {} {}", tensor.name, static_cast<int>(shape.space), shape.cols,
                      static_cast<int>(shape.dtype), shape.loops));
    }
    for (const Operation& operation : graph.operations()) {
      std::string text = fmt::format("{} {} {}", operation.def->name,
                                     static_cast<int>(operation.direction), operation.loops);
      Attributes attributes = operation.attributes;
      attributes.key = 0;  // no constant depends on it, and it counts operators
      text += fmt::format(" {}", fmt::join(attributes.fields(), " "));
      for (const TensorId input : operation.inputs) text += fmt::format(" {}", (*this)[input]);
      hashes_[static_cast<std::size_t>(operation.output)] = std::hash<std::string>{}(text);
      for (std::size_t i = 0; i < operation.states.size(); ++i) {
        hashes_[static_cast<std::size_t>(operation.states[i])] =
            std::hash<std::string>{}(fmt::format("{} state {}", text, i));
      }
    }
  }
  std::size_t operator[](TensorId id) const { return hashes_[static_cast<std::size_t>(id)]; }

 private:
  std::vector<std::size_t> hashes_;
};

}  // namespace

namespace {

// The constants with a propagation in them that the rest of a graph reads, at vertices or at edges.
class Frontier {
 public:
  Frontier(const TensorGraph& graph, Hoist hoist) : graph_(graph), constants_(graph, hoist) {
    for (const Operation& operation : graph.operations()) {
      if (constants_.contains(operation.output)) continue;
      for (const TensorId input : operation.inputs) visit(input);
    }
  }
  const std::set<TensorId>& tensors() const { return tensors_; }

 private:
  void visit(TensorId id) {
    const Tensor& tensor = graph_.tensor(id);
    if (!constants_.propagated(id)) return;
    if (tensor.shape.space == Space::kVertex) {
      if (tensor.shape.dtype == graph_.real()) tensors_.insert(id);
      return;
    }
    const auto producer = static_cast<std::size_t>(tensor.producer);
    for (const TensorId input : graph_.operations()[producer].inputs) visit(input);
  }

  const TensorGraph& graph_;
  Constants constants_;
  std::set<TensorId> tensors_;
};

}  // namespace

Rewritten hoist_constants(const TensorGraph& graph, std::vector<Hoisted>& hoisted, Hoist hoist) {
  const Frontier frontier(graph, hoist);
  const Structure structure(graph);
  GraphRebuilder rebuilder(graph);
  for (const Operation& operation : graph.operations()) {
    if (operation.def->dependence == Dependence::kToEdges) {
      // Anew: rows of what is an input now are copied before edges read them.
      const TensorId vertex = rebuilder.at(operation.inputs[0]);
      rebuilder.set(operation.output, rebuilder.add(operation, {vertex}, ""));
      continue;
    }
    if (!frontier.tensors().contains(operation.output)) {
      rebuilder.copy(operation);
      continue;
    }
    const std::int64_t cols = graph.shape(operation.output).cols;
    const std::string input =
        fmt::format("once.{}.{:016x}", operation.def->name, structure[operation.output]);
    rebuilder.set(operation.output, rebuilder.graph().input(input, cols, graph.real()));
    hoisted.push_back({operation.output, input, cols});
  }
  return rebuilder.finish();
}

}  // namespace ooc
