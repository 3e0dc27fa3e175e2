// How a run reads its dataset: --io.
#pragma once

#include <memory>

#include "engine/machine/run_budget.h"

namespace ooc {

class BlockIo;
class Dataset;

enum class DatasetIo {
  kAuto,     // mapped where mapping_pays(), else past the page cache: io_uring, or threads
  kUring,    // past the page cache by io_uring
  kThreads,  // past the page cache by threads
  kMapped,   // where it lies, in a mapping; scratch as with kAuto
};

// Of kAuto the second way: whether to map (make_mapped_block_io()) is known once there is a plan.
// IoError where io_uring is asked for and refused.
std::unique_ptr<BlockIo> open_io(DatasetIo io);

// What a mapping may take beyond the pages that a plan has memory for: the kernel also maps pages
// around those that are asked for.
std::int64_t mapped_slack_bytes(DatasetIo io);

// Whether kAuto maps the dataset of a run that stores nothing: its files take less than half of the
// host's memory that the run may take. Then there is room for its pages, and what the page cache
// holds of it needn't be read. Not for a device with memory of its own.
bool mapping_pays(const Dataset& dataset, const RunBudget& budget);

}  // namespace ooc
