// What rewrites share: building a graph anew, operation by operation, and finding constants.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/operators.h"
#include "engine/rewrite/rewrites.h"

namespace ooc {

// Starts with everything that comes from outside. Ids of the old graph and of the new one are told
// apart by parameter names: `old_...` are of the old one.
class GraphRebuilder {
 public:
  explicit GraphRebuilder(const TensorGraph& old);

  const TensorGraph& old() const { return old_; }
  TensorGraph& graph() { return out_.graph; }
  // A tensor of the old graph in the new one; -1: not there.
  TensorId at(TensorId old_id) const { return out_.at(old_id); }
  void set(TensorId old_id, TensorId id) { out_.tensors[static_cast<std::size_t>(old_id)] = id; }
  // The operation with its inputs as they are now.
  void copy(const Operation& old_operation);
  // An operation like it over other inputs; edges read copies of what comes from outside. Returns
  // its output.
  TensorId add(const Operation& like, std::vector<TensorId> inputs, const std::string& name);
  // Beneath a copy of an input: the input.
  TensorId uncopied(TensorId id) const;
  Rewritten finish() { return std::move(out_); }

 private:
  const TensorGraph& old_;
  Rewritten out_;
};

// Tensors that depend on inputs alone: on no parameter, no random number, no epoch. Of kCarried on
// what edges carry alone, and at vertices.
class Constants {
 public:
  explicit Constants(const TensorGraph& graph, Hoist hoist = Hoist::kAll);
  bool contains(TensorId id) const { return constant_[static_cast<std::size_t>(id)]; }
  // Constant, and a gather is part of it.
  bool propagated(TensorId id) const { return propagated_[static_cast<std::size_t>(id)]; }

 private:
  std::vector<bool> constant_, propagated_;
};

}  // namespace ooc
