#include "engine/machine/dataset_io.h"

#include "storage/dataset/dataset.h"
#include "storage/io/block_file.h"

namespace ooc {

std::unique_ptr<BlockIo> open_io(DatasetIo io) {
  switch (io) {
    case DatasetIo::kAuto:
      break;
    case DatasetIo::kUring:
      return make_block_io({.kind = BlockIoKind::kUring});
    case DatasetIo::kThreads:
      return make_block_io({.kind = BlockIoKind::kThreads});
    case DatasetIo::kMapped:
      return make_block_io({.kind = BlockIoKind::kMapped});
  }
  return make_block_io();
}

std::int64_t mapped_slack_bytes(DatasetIo io) {
  constexpr std::int64_t kSlack = 8 << 20;
  return io == DatasetIo::kMapped ? kSlack : 0;
}

bool mapping_pays(const Dataset& dataset, const RunBudget& budget) {
  if (budget.plan.device) return false;
  std::int64_t bytes = 0;
  for (const auto& [name, info] : dataset.manifest().files) {
    bytes += static_cast<std::int64_t>(info.bytes);
  }
  return 2 * bytes < budget.host_bytes;
}

}  // namespace ooc
