// Sums the partial results of a pass over a fixed binary tree of its row groups, whatever order
// they finish in: the result depends on the number of leaves alone, and only a few partials are
// alive at once: most_partials() of concurrency.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "kernels/device/backend.h"

namespace ooc {

// Where a tree's partials lie: a slab of device memory, planned before the first pass.
struct PartialSlab {
  std::byte* data = nullptr;
  std::int64_t partials = 0;
  std::int64_t partial_bytes = 0;
  std::int64_t leaves = 0;  // of the partials, for those of a call
};

// Threads: all methods may be called from many; merging runs outside the lock. On a device that
// doesn't run kernels inline they are called in the order of its compute queue: what is given back
// is taken again by what is asked for later.
class ReductionTree {
 public:
  // A partial has `count` elements.
  ReductionTree(Backend& backend, DType dtype, std::int64_t count, std::int64_t leaf_count,
                const PartialSlab& slab);

  // A zeroed partial to fill. The slab has one.
  std::byte* take();
  // Adds leaf `leaf`, once each.
  void add(std::int64_t leaf, std::byte* partial);
  // On a device that sums many row groups in a call: zeroed partials beside each other, for leaves
  // first, first + 1, …, as many as the slab has for them, and what adds these, in order.
  std::vector<std::byte*> take_leaves(std::int64_t count);
  void add_leaves(std::int64_t first, std::int64_t count);
  // The sum of all leaves, once each has been added; kept until the next round's.
  std::byte* result() const { return result_; }

  // Where several devices have leaves, each beside each other: the sums of a device's own, whose
  // siblings are others'. By one thread, between rounds.
  struct Root {
    std::pair<int, std::int64_t> node;  // level, index in level
    std::byte* partial = nullptr;
  };
  std::vector<Root> take_roots();
  void give_back(std::byte* partial);
  // Memory for a root of another device, or for a result that another one has; and to add it, or
  // to keep it.
  std::byte* take_place() { return take_any(); }
  void add(const Root& root) { add(root.node, root.partial); }
  void set_result(std::byte* partial);
  std::int64_t partial_bytes() const {
    return count_ * static_cast<std::int64_t>(dtype_bytes(dtype_));
  }
  // Forgets what an unfinished round left.
  void reset();

 private:
  using Node = std::pair<int, std::int64_t>;  // level, index in level

  std::byte* take_any();
  void add(Node node, std::byte* partial);

  Backend& backend_;
  DType dtype_;
  std::int64_t count_;
  PartialSlab slab_;
  std::vector<std::int64_t> level_counts_;  // nodes of each level, leaves first
  std::vector<std::byte*> all_;             // partials
  std::mutex mutex_;
  std::map<Node, std::byte*> waiting_;  // for their sibling
  std::vector<std::byte*> free_;
  std::byte* result_ = nullptr;
};

}  // namespace ooc
