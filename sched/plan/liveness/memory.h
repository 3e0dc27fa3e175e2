// What lies in memory when: ranges, the memory of uses, edge slots; and their places in the arena.
#pragma once

#include <algorithm>
#include <vector>

#include "sched/plan/liveness/in_place.h"

namespace ooc {

// How large a pass's slots are. Of rows in the steps: so many times a step, or an I/O chunk of the
// widest rows where that is longer, and so many bytes of those; the other slots hold as many rows.
// Of edges: those of `times` spans, and so many bytes. Of what they read: so many spans, and as
// many bytes as of rows in the steps. All where there are so many items.
struct SlotCounts {
  std::int64_t times = 1;
  std::int64_t bytes = 0;
  std::int64_t edge_bytes = 0;
  std::int64_t spans = 1;

  bool operator==(const SlotCounts&) const = default;
};

// What streams in or out beside a pass's row-wise steps comes and goes in so many rows: a step, or
// an I/O chunk of the widest tensor where that is longer, for no slot is free before its I/O
// chunk's last step.
class RowGrain {
 public:
  // Of a pass, by its uses: drafts of them, or as planned.
  template <class Uses>
  RowGrain(std::int64_t step_rows, const Uses& uses, const std::vector<PlannedTensor>& tensors)
      : rows_(step_rows) {
    for (const auto& use : uses) {
      const bool streams = use.role == UseRole::kRows || use.role == UseRole::kOutput;
      if (streams) add(tensors[static_cast<std::size_t>(use.tensor)]);
    }
    rows_ = std::max(rows_, widest_io_chunk_);
  }

  // Of a slots: the rows at hand may lie at the end of an I/O chunk.
  std::int64_t io_chunks(const PlannedTensor& tensor, const SlotCounts& slot_counts) const;
  // How many times the grain so many I/O chunks hold; below 1 where that is fewer rows than workers
  // have in work at once.
  double depth(const PlannedTensor& tensor, std::int64_t io_chunks, std::int64_t in_work) const;

 private:
  void add(const PlannedTensor& tensor);

  std::int64_t rows_;
  std::int64_t widest_row_ = 0;       // bytes
  std::int64_t widest_io_chunk_ = 0;  // rows
};

// Rows that so many workers have in work: whole steps, whose groups are theirs.
std::int64_t rows_in_work(std::int64_t workers, std::int64_t step_rows, std::int64_t group_rows);

// Slots of edge chunks, the largest of so many bytes. Of a span that a destination range folds it
// holds all of them, or, of many, those that are as long on their way as a span's rows.
struct EdgeSlots {
  // Of a pass with destination ranges of so many blocks.
  EdgeSlots(const EdgeLayout& edges, std::int64_t dst_range_blocks, std::int64_t chunk_bytes);

  std::int64_t slots(const SlotCounts& slot_counts) const;
  // Spans that so many slots hold, beside the chunk at hand.
  double spans(std::int64_t slots) const;

  std::int64_t chunk_bytes;
  std::int64_t span_chunks;
};

class MemoryModel {
 public:
  // The references must outlive it. Not `works`: the passes' uses lie in another memory, and what
  // is here are rows and edge chunks from `first_chunks` on. What `in-place aliases` share counts
  // once.
  MemoryModel(const PassBuilder& builder, const EdgeTable& edges, const Draft& draft,
              const DeviceShare& share, const std::vector<Timeline>& timelines,
              const std::vector<InPlaceAlias>& aliases, bool works = true,
              const std::array<std::int64_t, 2>& first_chunks = {});

  // `during`: up to which block the use's tensor is in resident ranges.
  UseMemory use(int pass, const UseDraft& use, std::int64_t during,
                const SlotCounts& slot_counts) const;
  UseMemory edge_slot_memory(int pass, std::int64_t end_chunk, const SlotCounts& slot_counts) const;
  std::int64_t worker_scratch(int pass) const;  // of all workers
  // All uses, the edge slots and the workers' scratch of a pass.
  std::int64_t working_set(int pass, const ResidentSet& residency,
                           const SlotCounts& slot_counts) const;
  // Of the edge chunks before `end_chunk`.
  std::int64_t edge_range(Direction direction, std::int64_t end_chunk) const;
  // By pass: ranges and edge ranges.
  std::vector<std::int64_t> kept(const ResidentSet& residency) const;
  // Up to which block a use's tensor is in resident ranges during the pass; 0: nothing is.
  std::int64_t during(int pass, const UseDraft& use, const ResidentSet& residency) const;
  bool streams_apart(const UseDraft& use) const {
    return use.role == UseRole::kStreamed && !share_.alone;
  }

 private:
  const StageShape& stage(int pass) const;

  const PassBuilder& builder_;
  const EdgeTable& edges_;
  const Draft& draft_;
  const DeviceShare& share_;
  std::vector<RowGrain> grains_;  // by pass
  const std::vector<Timeline>& timelines_;
  const std::vector<InPlaceAlias>& aliases_;
  bool works_;
  std::array<std::int64_t, 2> first_chunks_;
};

// Bands of levels as ranges without places; those that share one have the same blocks.
std::vector<ResidentRange> make_ranges(const Draft& draft, const std::vector<Timeline>& timelines,
                                       const std::vector<InPlaceAlias>& aliases,
                                       const ResidentSet& residency);

// Gives every region of a device's plan its place in the arena of `limit` bytes (0: no limit);
// `device` has the sizes and lifetimes. Ranges may come out cut. Returns the ranges, or rests of
// them, that found no place; the rest of the plan must fit.
std::vector<ResidentRange> place(const std::vector<PlannedTensor>& tensors,
                                 const std::vector<Timeline>& timelines,
                                 const std::vector<InPlaceAlias>& aliases, std::int64_t limit,
                                 DevicePlan& device);

}  // namespace ooc
