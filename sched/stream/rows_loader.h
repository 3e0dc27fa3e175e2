// The rows of a vertex tensor as the items of a stream: from its store into a slot, or into the
// range that holds them, once.
#pragma once

#include <atomic>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sched/plan/plan.h"
#include "sched/stream/hazards.h"
#include "sched/stream/item_stream.h"
#include "sched/stream/pending_writes.h"
#include "sched/tiers/residency.h"
#include "storage/stores/tensor_store.h"

namespace ooc {

// Whole I/O chunks, wholly in a resident range or in none.
struct RowsItem {
  std::int64_t first_block = 0, end_block = 0;
  std::int64_t first_slice = 0, end_slice = 0;
};

// The items of a stream, in order, in little memory: `item_blocks` at a time through the blocks of
// each run, all of its slices together.
struct RowsItems {
  std::int64_t item_blocks = 1;
  std::vector<std::int64_t> order{};  // of a run's items, by place; empty: that of their blocks
  struct Run {
    RowsItem all;
    std::int64_t first_item = 0;
  };
  std::vector<Run> runs{};
  std::int64_t count = 0;

  void add(const RowsItem& run);
  RowsItem at(std::int64_t item) const;
};

// Into the arena and out of it, unpadded: over the link to a device, else to and from storage. The
// zeros that storage doesn't hold are counted there, too.
struct MovedBytes {
  std::atomic<std::int64_t> in{0}, out{0};
  std::atomic<std::int64_t> zeros_in{0}, zeros_out{0};
  std::atomic<std::int64_t> between_devices{0};
};

// What every use of a tensor in a pass needs to know of it.
struct TensorAccess {
  const PlannedTensor* tensor = nullptr;
  int index = -1;                // of the plan's tensors; -1: in no resident range and no store
  TensorStore* store = nullptr;  // null: in none
  Residency* residency = nullptr;
  int pass = 0;  // counted over all sections
  MovedBytes* moved = nullptr;
  PendingWrites* leaving = nullptr;
  Hazards* hazards = nullptr;
  // All rows of a store that is mapped: they are used there. Ranges and slots have as much of the
  // arena as others do, which then holds nothing, so that mapped rows are within the plan's memory.
  RowsPlace mapped = {};
  std::int64_t stored_from_block = 0;  // DevicePlan's
  bool in_ranges = true;               // false: no resident range holds what comes

  bool is_mapped() const { return mapped.data != nullptr; }
  // Of the resident range that holds the block; -1: none.
  int range(std::int64_t block) const {
    return index < 0 || !in_ranges ? -1 : residency->find(index, block, pass);
  }
};

class RowsLoader : public ItemLoader {
 public:
  // `dst_range`: where items that no resident range holds lie; without data they take slots.
  RowsLoader(const TensorAccess& access, RowsItems items, RowsPlace dst_range = {});
  // Mapped rows of its destination range needn't stay in memory any more.
  ~RowsLoader() override;

  // What an item takes of a slot, in all slices.
  std::size_t item_bytes(std::int64_t item) const;
  // That another device passed it on.
  void count_passed_on(std::int64_t item) const;
  // Where an item's rows lie that is at `data`.
  RowsPlace rows(std::int64_t item, std::byte* data) const;

  std::int64_t count() const override { return items_.count; }
  std::byte* place(std::int64_t item) const override;
  bool must_wait(std::int64_t item) const override;
  void load(std::int64_t item, std::byte* data, ComingItem& coming) override;
  void arrived(std::int64_t item) override;
  bool complete(std::int64_t item) const override;
  void released(std::int64_t item) override;

 private:
  // In the arena.
  RowsPlace arena_rows(const RowsItem& item, std::byte* data) const;
  std::int64_t first_row(std::int64_t io_chunk) const {
    return io_chunk * access_.tensor->io_chunk_blocks * access_.tensor->layout.block_rows;
  }
  template <class Visit>
  void for_each_io_chunk(const RowsItem& item, Visit&& visit) const;

  TensorAccess access_;
  RowsItems items_;
  RowsPlace dst_range_;
  std::int64_t loaded_ = 0;  // items
  // Into ranges, by item that is on its way: I/O chunk, slice.
  std::unordered_map<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>> coming_;
};

}  // namespace ooc
