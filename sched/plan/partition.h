// Which of the graph's blocks are whose, where there are several devices.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/plan/options.h"
#include "sched/plan/plan.h"

namespace ooc {

// A range for each of `devices`, in order, of whole `grain`s of blocks, which no device shares with
// another; of about as many in-edges or vertices each. UsageError where there are fewer grains than
// devices.
std::vector<BlockRange> cut_blocks(const GraphCounts& graph, DevicePartition partition,
                                   std::int64_t devices, std::int64_t grain);

}  // namespace ooc
