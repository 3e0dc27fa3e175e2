#include "kernels/device/backend.h"

namespace ooc {

void Backend::sum_leaves(const LeafSum& sum) {
  for (std::int64_t width = 1; width < sum.leaves; width *= 2) {
    for (std::int64_t leaf = 0; leaf < sum.leaves; leaf += 2 * width) {
      accumulate(sum.dtype, sum.count, sum.from + leaf * sum.stride,
                 sum.from + (leaf + width) * sum.stride);
    }
  }
  queue(QueueKind::kCompute)
      .copy(sum.to, sum.from, static_cast<std::size_t>(sum.count) * dtype_bytes(sum.dtype));
}

}  // namespace ooc
