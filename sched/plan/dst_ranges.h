#pragma once

#include <algorithm>
#include <cstdint>

#include "sched/plan/plan.h"

namespace ooc {

// Calls visit(first_slice, end_slice, first_block, end_block) for a pass's destination ranges of a
// device's own blocks in order, while it returns true; returns whether it did to the end.
// `in_ring`: also where other devices have more of them, with no blocks.
template <class Visit>
bool for_each_dst_range(const Pass& pass, const BlockRange& own, bool in_ring, Visit&& visit) {
  if (pass.kind == PassKind::kRow) return visit(0, 1, own.first, own.end);
  const std::int64_t slices =
      std::max<std::int64_t>(ceil_div(pass.slice_local_cols, kSliceWidth), 1);
  const std::int64_t at_once = pass.slices_at_once > 0 ? pass.slices_at_once : slices;
  const std::int64_t ranges =
      in_ring ? pass.dst_ranges : ceil_div(own.count(), pass.dst_range_blocks);
  for (std::int64_t slice = 0; slice < slices; slice += at_once) {
    for (std::int64_t range = 0; range < ranges; ++range) {
      const std::int64_t block = std::min(own.first + range * pass.dst_range_blocks, own.end);
      const bool on = visit(slice, std::min(slice + at_once, slices), block,
                            std::min(block + pass.dst_range_blocks, own.end));
      if (!on) return false;
    }
  }
  return true;
}

}  // namespace ooc
