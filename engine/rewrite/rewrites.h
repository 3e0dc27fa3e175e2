// Rewrites of the tensor graph: each computes the same in another, cheaper way, before gradients
// are derived, so that backward gains as well (one part of `order` comes after them). What they
// decide depends on the graph, the dataset's counts and the options, never on a budget: results are
// the same under every plan.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/graph/tensor_graph.h"

namespace ooc {

// Which rewrites are made, all by default. In the order they are made:
struct Rewrites {
  // Operators on what comes from one end of an edge move to the vertices (NGra §3.2): a matmul of
  // src is done once a vertex instead of once an edge.
  bool motion = true;
  // Equal operators on equal operands are done once.
  bool common = true;
  // A matmul before or after a propagation that it commutes with goes where fewer columns are
  // propagated, forward and backward together; of as many, those with zeros, each way by itself.
  bool order = true;
  // What depends on inputs alone, such as A X of the first layer, is computed once a run.
  bool hoisting = true;
  // What no result depends on goes.
  bool dead = true;
  // Edge expressions run in batches that stay in cache, and gathers over the same edges share a
  // propagation. Stages and plans read it.
  bool fusion = true;
  // Edges that add zeros, from rows of gradients outside the train split, are passed over where
  // that pays; no bit depends on it. Stages and plans read it.
  bool zeros = true;

  bool operator==(const Rewrites&) const = default;
};

// From "-fusion,-motion": those named with a minus are not made. UsageError naming what --rewrites
// takes.
Rewrites parse_rewrites(const std::string& list);

// A graph that was rebuilt, and the tensors of the old one in it; -1: gone.
struct Rewritten {
  TensorGraph graph;
  std::vector<TensorId> tensors;

  TensorId at(TensorId old) const { return old < 0 ? -1 : tensors[static_cast<std::size_t>(old)]; }
};

Rewritten move_operators(const TensorGraph& graph);
Rewritten merge_common(const TensorGraph& graph);
// `roots`: what is asked for; everything from outside stays.
Rewritten drop_dead(const TensorGraph& graph, const std::vector<TensorId>& roots);
// `can_hoist`: a propagation of what depends on inputs alone is done once a run.
Rewritten order_matmuls(const TensorGraph& graph, const std::vector<TensorId>& roots,
                        bool can_hoist);

// After gradients, forward and backward each by itself: a matmul before a propagation goes after
// it where what it reads has no more columns and fewer elements that aren't zero. So with as many
// columns on both sides both ways propagate what comes out of activations, and not products:
// forward A X, backward A' dY. Part of `order`.
Rewritten gather_sparse_rows(const TensorGraph& graph, const std::vector<TensorId>& roots);

// What hoisting takes out of a graph: a vertex tensor of it, and the input that replaces it. Equal
// tensors of two graphs get equal names.
struct Hoisted {
  TensorId tensor = -1;  // of the graph before
  std::string input;
  std::int64_t cols = 0;
};
enum class Hoist {
  kAll,
  kCarried,  // sums of what edges carry, and what follows at vertices from them alone
};
Rewritten hoist_constants(const TensorGraph& graph, std::vector<Hoisted>& hoisted,
                          Hoist hoist = Hoist::kAll);

}  // namespace ooc
