// What a pass has in memory: its uses of tensors and edges, the streams that bring them, and where
// rows lie.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/spec/matrix_view.h"
#include "sched/plan/span_windows.h"
#include "sched/run/dst_range.h"
#include "sched/run/pass_context.h"

namespace ooc {

// One use of a tensor, by its role.
struct PassUse {
  const TensorUse* planned = nullptr;
  const UseMemory* memory = nullptr;
  PlannedTensor own;  // of a use without a tensor
  TensorAccess access;
  std::unique_ptr<ItemStream> stream;  // kStreamed, kRows
  RowsLoader* loader = nullptr;        // the stream's
  std::shared_ptr<RowsWriter> writer;  // kOutput
  std::int64_t item_blocks = 0;        // kStreamed, kRows: of the tensor
  std::vector<std::int64_t> places;    // kStreamed, in a ring: of a sweep's items
  // kRows: the first item of the destination range whose rows run, and of the next one.
  std::int64_t dst_range_items = 0, next_dst_range_items = 0;

  UseRole role() const { return planned->role; }
  const PlannedTensor& tensor() const { return *access.tensor; }
  std::int64_t item_rows() const { return item_blocks * tensor().layout.block_rows; }
};

// The driving thread; what reads or changes streams, under the driver's lock.
class PassStreams {
 public:
  // Opens the streams. All of it outlives them.
  PassStreams(const PassInfo& info, const SpanWindows& windows);

  std::vector<PassUse>& uses() { return uses_; }
  const std::vector<PassUse>& uses() const { return uses_; }
  const PassUse& use_of(ValueId value, UseRole role) const;
  ItemStream& edges() const { return *edges_; }
  const EdgeLoader& edge_loader() const { return *edge_loader_; }

  // Asks for what there is room for.
  void advance();
  // A sweep in which this device folds nothing: what is streamed is passed on to the next one.
  void skip_sweep(std::int64_t sweep);
  // In a ring: whether the next device has got all that it gets from this one.
  bool all_passed_on() const;

  // Places for the rows of a destination range that its edges read or fold into.
  void place_dst_range(DstRange& dst_range);
  // Asks for those that edges read, of all kResident uses; their items are to be held.
  void load_resident(DstRange& dst_range);
  void resident_is_there() { loading_ = nullptr; }

  // Slices of a use's rows that are at hand in a destination range.
  bool is_sliced(const PassUse& use) const;
  std::int64_t slice_begin(const DstRange& dst_range, const PassUse& use) const;
  std::int64_t slice_end(const DstRange& dst_range, const PassUse& use) const;
  // The item of a kRows use that has a row of the destination range whose rows run, which begins at
  // `first_row`.
  std::int64_t rows_item(const PassUse& use, std::int64_t first_row, std::int64_t row) const;
  // The rows of a use from `row` on, which are there or have their place: of all slices, or those
  // at hand.
  SlicedRows rows_at(const DstRange& dst_range, std::size_t use, std::int64_t row) const;
  // Spans of an item of a streamed tensor, and the number of the one that has a span.
  std::int64_t item_spans(const PassUse& use) const;
  std::int64_t item_of_span(const PassUse& use, std::int64_t sweep, std::int64_t span) const;
  // The same of a span's rows of a streamed tensor, in an item that is there.
  SlicedRows span_rows(const DstRange& dst_range, const PassUse& use, std::int64_t item,
                       std::int64_t span) const;
  std::size_t index_of(const PassUse& use) const {
    return static_cast<std::size_t>(&use - uses_.data());
  }

 private:
  void open(PassUse& use);
  void open_streamed(PassUse& use);
  void open_rows(PassUse& use);
  void open_edges();
  std::vector<std::int64_t> order_of_items(const PassUse& use) const;
  Slots slots(const UseMemory& memory) const;
  Slots row_slots(const PassUse& use) const;
  RowsPlace dst_range_place(const DstRange& dst_range, const PassUse& use) const;
  std::byte* row_address(const DstRange& dst_range, std::size_t use, std::int64_t row,
                         std::int64_t slice) const;

  const PassInfo& info_;
  const SpanWindows& windows_;
  std::vector<PassUse> uses_;
  std::unique_ptr<ItemStream> edges_;
  EdgeLoader* edge_loader_ = nullptr;
  DstRange* loading_ = nullptr;  // whose resident rows are being asked for
};

}  // namespace ooc
