// A destination range of a pass: blocks, and slices of the slice-local tensors, that are folded and
// then taken through the steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sched/plan/dst_ranges.h"
#include "sched/plan/plan.h"
#include "sched/stream/item_stream.h"
#include "sched/stream/rows_writer.h"

namespace ooc {

// Shared by the driving thread and tasks; its members under the driver's lock unless said
// otherwise.
struct DstRange {
  std::int64_t first_block = 0, end_block = 0;
  std::int64_t first_slice = 0, end_slice = 0;
  std::int64_t sweep = 0;        // sweeps before it, in all groups of slices
  std::int64_t number = 0;       // of them, those that this device folded
  std::int64_t begun_spans = 0;  // that some group of blocks has taken

  // By use of the pass: of kResident and kAccumulator.
  struct Rows {
    RowsPlace place;
    std::unique_ptr<ItemStream> stream;  // kResident
    std::shared_ptr<RowsWriter> writer;  // kAccumulator
  };
  std::vector<Rows> rows;
  // Items of the edges, by panel and span.
  std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> chunks;
  std::vector<std::int32_t> folded;  // spans, by block and slice
  // By edge reduction and block: sums so far. Each by the task that folds its block.
  std::vector<std::vector<std::byte*>> partials;
  std::int64_t next_row = 0;   // of the steps, to be handed out
  std::int64_t rows_left = 0;  // to be finished by them

  std::int64_t blocks() const { return end_block - first_block; }
};

}  // namespace ooc
