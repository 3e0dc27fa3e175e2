// Sums the partial results of a pass over a fixed binary tree of its row groups, whatever order
// they finish in: the result depends on the number of leaves alone, and only a few partials are
// alive at once: most_partials() of concurrency.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/device/backend.h"

namespace ooc {

// Threads: all methods may be called from many; merging runs outside the lock.
class ReductionTree {
 public:
  // A partial has `count` elements.
  ReductionTree(Backend& backend, DType dtype, std::int64_t count, std::int64_t leaf_count);

  using Partial = std::unique_ptr<DeviceBuffer>;
  // A zeroed partial to fill.
  Partial take();
  // Adds leaf `leaf`, once each.
  void add(std::int64_t leaf, Partial partial);
  // The sum of all leaves, once each has been added; kept until the next round's.
  const DeviceBuffer& result() const { return *result_; }
  // Forgets what an unfinished round left.
  void reset();

 private:
  using Node = std::pair<int, std::int64_t>;  // level, index in level

  Backend& backend_;
  DType dtype_;
  std::int64_t count_;
  std::vector<std::int64_t> level_counts_;  // nodes of each level, leaves first
  std::mutex mutex_;
  std::map<Node, Partial> waiting_;  // for their sibling
  std::vector<Partial> free_;
  Partial result_;
};

}  // namespace ooc
