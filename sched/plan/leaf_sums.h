#pragma once

#include <cstdint>

#include "kernels/device/backend.h"

namespace ooc {

// Leaves [first, first + count) of a binary tree as the subtrees that they are, the largest ones:
// of a power of two of leaves, at a multiple of it. Calls visit(level, leaf) for each in order: it
// has the leaves from `leaf` on, 2^level of them.
template <class Visit>
void for_each_leaf_sum(std::int64_t first, std::int64_t count, Visit&& visit) {
  for (std::int64_t leaf = first, end = first + count; leaf < end;) {
    int level = 0;
    const auto fits = [&](std::int64_t leaves) {
      return leaf % leaves == 0 && leaf + leaves <= end;
    };
    while (level < kMostLeavesLevel && fits(std::int64_t{2} << level)) ++level;
    visit(level, leaf);
    leaf += std::int64_t{1} << level;
  }
}

}  // namespace ooc
