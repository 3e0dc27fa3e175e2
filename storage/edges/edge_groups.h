// The edges of a range of keys, pair of vertices by pair of vertices: what was given of each pair
// in both directions, and what the transforms store of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "storage/edges/edge_transforms.h"
#include "storage/edges/sorted_runs.h"
#include "storage/format/edge_key.h"
#include "storage/format/tile.h"

namespace ooc {

// Parallel edges and what they carry, EdgeData::bytes() for each; valid while it is visited.
struct EdgeCopies {
  std::size_t count = 0;
  const std::byte* data = nullptr;
};

struct EdgeGroup {
  Edge edge;                  // u -> v
  std::size_t given_in = 0;   // edges u -> v
  std::size_t given_out = 0;  // edges v -> u
  EdgeCopies stored_in = {};
  EdgeCopies stored_out = {};
  bool symmetric = true;  // the stored edges are the same both ways
};

class EdgeGroups {
 public:
  EdgeGroups(const EdgeKeys& keys, const EdgeData& data, const EdgeTransforms& transforms)
      : keys_(keys),
        data_(data),
        bytes_(data.bytes()),
        transforms_(transforms),
        as_given_(bytes_ == 0 && !transforms.undirected &&
                  transforms.self_loops == SelfLoops::kKeep &&
                  transforms.coalesce == Coalesce::kKeep) {}

  // To be filled, sorted: edges by their keys, and reversed edges.
  Records& in() { return in_; }
  Records& out() { return out_; }
  // The vertices [first, end) get a self loop where they have none; all their loops' keys lie in
  // the range.
  void add_loops(std::pair<VertexId, VertexId> vertices) { loops_ = vertices; }

  // Calls visit(const EdgeGroup&) for every pair, in order of keys.
  template <class Visit>
  void for_each(Visit&& visit) {
    VertexId loop = loops_.first;
    for (std::size_t i = 0, j = 0; i < in_.size() || j < out_.size() || loop < loops_.second;) {
      const std::uint64_t key = least_key(i, j, loop);
      EdgeGroup group{.edge = keys_.edge_of(key)};
      const std::size_t in_begin = i, out_begin = j;
      while (i < in_.size() && in_.keys[i] == key) ++i;
      while (j < out_.size() && out_.keys[j] == key) ++j;
      group.given_in = i - in_begin;
      group.given_out = j - out_begin;
      group.stored_in = {group.given_in, in_.data.data() + in_begin * bytes_};
      group.stored_out = {group.given_out, out_.data.data() + out_begin * bytes_};
      if (group.edge.source == group.edge.destination && loop == group.edge.source &&
          loop < loops_.second) {
        ++loop;
      }
      transform(group);
      visit(static_cast<const EdgeGroup&>(group));
    }
  }

 private:
  std::uint64_t least_key(std::size_t i, std::size_t j, VertexId loop) const {
    std::uint64_t key = ~std::uint64_t{0};
    if (i < in_.size()) key = in_.keys[i];
    if (j < out_.size()) key = std::min(key, out_.keys[j]);
    if (loop < loops_.second) key = std::min(key, keys_.key_of({loop, loop}));
    return key;
  }
  void transform(EdgeGroup& group) {
    if (!as_given_) return transform_given(group);
    group.symmetric = group.given_in == group.given_out;
  }
  void transform_given(EdgeGroup& group);
  EdgeCopies coalesce(const EdgeCopies& copies, std::vector<std::byte>& merged) const;
  void merge(const std::byte* from, std::byte* into) const;
  void divide(std::byte* record, std::size_t count) const;

  EdgeKeys keys_;
  EdgeData data_;
  std::size_t bytes_;
  EdgeTransforms transforms_;
  bool as_given_;  // nothing to transform, no data to compare
  Records in_, out_;
  std::pair<VertexId, VertexId> loops_{0, 0};
  std::vector<std::byte> merged_in_, merged_out_, loop_;
};

}  // namespace ooc
