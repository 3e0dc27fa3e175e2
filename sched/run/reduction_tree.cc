#include "sched/run/reduction_tree.h"

#include "storage/base/errors.h"

namespace ooc {

ReductionTree::ReductionTree(Backend& backend, DType dtype, std::int64_t count,
                             std::int64_t leaf_count, const PartialSlab& slab)
    : backend_(backend), dtype_(dtype), count_(count) {
  OOC_CHECK(count * static_cast<std::int64_t>(dtype_bytes(dtype)) <= slab.partial_bytes);
  for (std::int64_t nodes = leaf_count;; nodes = ceil_div(nodes, 2)) {
    level_counts_.push_back(nodes);
    if (nodes <= 1) break;
  }
  for (std::int64_t i = slab.partials; i-- > 0;) {
    all_.push_back(slab.data + i * slab.partial_bytes);
  }
  free_ = all_;
}

std::byte* ReductionTree::take() {
  std::byte* partial = nullptr;
  {
    const std::lock_guard lock(mutex_);
    OOC_CHECK(!free_.empty());
    partial = free_.back();
    free_.pop_back();
  }
  backend_.queue(QueueKind::kCompute)
      .zero(partial, static_cast<std::size_t>(count_) * dtype_bytes(dtype_));
  return partial;
}

void ReductionTree::add(std::int64_t leaf, std::byte* partial) {
  Node node{0, leaf};
  while (level_counts_[static_cast<std::size_t>(node.first)] > 1) {
    const std::int64_t sibling = node.second ^ 1;
    const Node parent{node.first + 1, node.second / 2};
    if (sibling >= level_counts_[static_cast<std::size_t>(node.first)]) {  // the odd one out
      node = parent;
      continue;
    }
    std::byte* other = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto found = waiting_.find({node.first, sibling});
      if (found == waiting_.end()) {
        waiting_.emplace(node, partial);
        return;
      }
      other = found->second;
      waiting_.erase(found);
    }
    if (sibling < node.second) std::swap(partial, other);  // left += right
    backend_.accumulate(dtype_, count_, partial, other);
    const std::lock_guard lock(mutex_);
    free_.push_back(other);
    node = parent;
  }
  const std::lock_guard lock(mutex_);
  if (result_ != nullptr) free_.push_back(result_);
  result_ = partial;
}

void ReductionTree::reset() {
  const std::lock_guard lock(mutex_);
  waiting_.clear();
  free_ = all_;
  if (result_ != nullptr) std::erase(free_, result_);
}

}  // namespace ooc
