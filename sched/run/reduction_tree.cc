#include "sched/run/reduction_tree.h"

#include "storage/base/errors.h"

namespace ooc {

ReductionTree::ReductionTree(Backend& backend, DType dtype, std::int64_t count,
                             std::int64_t leaf_count)
    : backend_(backend), dtype_(dtype), count_(count) {
  for (std::int64_t nodes = leaf_count;; nodes = ceil_div(nodes, 2)) {
    level_counts_.push_back(nodes);
    if (nodes <= 1) break;
  }
  result_ = take();
}

ReductionTree::Partial ReductionTree::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Partial partial = std::move(free_.back());
      free_.pop_back();
      backend_.zero(partial->data(), partial->bytes());
      return partial;
    }
  }
  return backend_.allocate(static_cast<std::size_t>(count_) * dtype_bytes(dtype_));
}

void ReductionTree::add(std::int64_t leaf, Partial partial) {
  Node node{0, leaf};
  while (level_counts_[static_cast<std::size_t>(node.first)] > 1) {
    const std::int64_t sibling = node.second ^ 1;
    const Node parent{node.first + 1, node.second / 2};
    if (sibling >= level_counts_[static_cast<std::size_t>(node.first)]) {  // the odd one out
      node = parent;
      continue;
    }
    Partial other;
    {
      const std::lock_guard lock(mutex_);
      const auto found = waiting_.find({node.first, sibling});
      if (found == waiting_.end()) {
        waiting_.emplace(node, std::move(partial));
        return;
      }
      other = std::move(found->second);
      waiting_.erase(found);
    }
    if (sibling < node.second) std::swap(partial, other);  // left += right
    backend_.accumulate(dtype_, count_, partial->data(), other->data());
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(other));
    node = parent;
  }
  const std::lock_guard lock(mutex_);
  if (result_) free_.push_back(std::move(result_));
  result_ = std::move(partial);
}

void ReductionTree::reset() {
  const std::lock_guard lock(mutex_);
  for (auto& [node, partial] : waiting_) free_.push_back(std::move(partial));
  waiting_.clear();
}

}  // namespace ooc
