#include "sched/run/reduction_tree.h"

#include "sched/plan/leaf_sums.h"
#include "storage/base/errors.h"

namespace ooc {

ReductionTree::ReductionTree(Backend& backend, DType dtype, std::int64_t count,
                             std::int64_t leaf_count, const PartialSlab& slab)
    : backend_(backend), dtype_(dtype), count_(count), slab_(slab) {
  OOC_CHECK(count * static_cast<std::int64_t>(dtype_bytes(dtype)) <= slab.partial_bytes);
  for (std::int64_t nodes = leaf_count;; nodes = ceil_div(nodes, 2)) {
    level_counts_.push_back(nodes);
    if (nodes <= 1) break;
  }
  for (std::int64_t i = slab.partials; i-- > slab.leaves;) {
    all_.push_back(slab.data + i * slab.partial_bytes);
  }
  free_ = all_;
}

std::byte* ReductionTree::take_any() {
  const std::lock_guard lock(mutex_);
  OOC_CHECK(!free_.empty());
  std::byte* const partial = free_.back();
  free_.pop_back();
  return partial;
}

std::byte* ReductionTree::take() {
  std::byte* const partial = take_any();
  backend_.queue(QueueKind::kCompute)
      .zero(partial, static_cast<std::size_t>(count_) * dtype_bytes(dtype_));
  return partial;
}

std::vector<std::byte*> ReductionTree::take_leaves(std::int64_t count) {
  OOC_CHECK(count <= slab_.leaves);
  backend_.queue(QueueKind::kCompute)
      .zero(slab_.data, static_cast<std::size_t>(count * slab_.partial_bytes));
  std::vector<std::byte*> partials;
  for (std::int64_t i = 0; i < count; ++i) partials.push_back(slab_.data + i * slab_.partial_bytes);
  return partials;
}

void ReductionTree::add_leaves(std::int64_t first, std::int64_t count) {
  for_each_leaf_sum(first, count, [&](int level, std::int64_t leaf) {
    std::byte* const sum = take_any();
    backend_.sum_leaves({dtype_, count_, sum, slab_.data + (leaf - first) * slab_.partial_bytes,
                         slab_.partial_bytes, std::int64_t{1} << level});
    add({level, leaf >> level}, sum);
  });
}

void ReductionTree::add(std::int64_t leaf, std::byte* partial) { add(Node{0, leaf}, partial); }

void ReductionTree::add(Node node, std::byte* partial) {
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
  set_result(partial);
}

void ReductionTree::set_result(std::byte* partial) {
  const std::lock_guard lock(mutex_);
  if (result_ != nullptr) free_.push_back(result_);
  result_ = partial;
}

std::vector<ReductionTree::Root> ReductionTree::take_roots() {
  const std::lock_guard lock(mutex_);
  std::vector<Root> roots;
  for (const auto& [node, partial] : waiting_) roots.push_back({node, partial});
  waiting_.clear();
  return roots;
}

void ReductionTree::give_back(std::byte* partial) {
  const std::lock_guard lock(mutex_);
  free_.push_back(partial);
}

void ReductionTree::reset() {
  const std::lock_guard lock(mutex_);
  waiting_.clear();
  free_ = all_;
  if (result_ != nullptr) std::erase(free_, result_);
}

}  // namespace ooc
