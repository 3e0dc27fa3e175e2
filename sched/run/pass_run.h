// One pass on its way: its streams, and the loops over spans and blocks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "kernels/device/backend.h"
#include "sched/plan/span_windows.h"
#include "sched/run/bound_pass.h"
#include "sched/run/reduction_tree.h"
#include "sched/stream/edge_loader.h"
#include "sched/stream/pending_writes.h"
#include "sched/stream/rows_loader.h"
#include "sched/stream/rows_writer.h"
#include "sched/tiers/host_store.h"
#include "sched/tiers/residency.h"
#include "sched/workers/driver.h"
#include "sched/workers/queue_watcher.h"

namespace ooc {

// What the passes of an executor share.
struct PassContext {
  Backend& backend;
  const EdgeLayout& edges;
  const Plan& plan;
  std::byte* arena = nullptr;
  Driver& driver;
  Residency& residency;
  std::vector<TensorStore*> stores;  // by the plan's tensors; null: in none
  EdgeStore& in;
  EdgeStore& out;
  HostStore* host = nullptr;                  // below a device; null: the stores are storage's
  QueueWatcher* compute = nullptr;            // null: the device runs kernels inline
  const std::uint64_t* self_loops = nullptr;  // device memory; a bit a vertex (SelfLoops)
  MovedBytes moved{};
  PendingWrites leaving{};
};

// What the passes of a section share.
struct SectionState {
  const Program* program = nullptr;
  const Section* section = nullptr;
  std::vector<std::byte*> parameters;  // by value
  std::map<ValueId, std::unique_ptr<ReductionTree>> reductions;
  std::vector<BoundPass> passes;

  const Value& value(ValueId id) const { return program->values[static_cast<std::size_t>(id)]; }
  // A parameter, or an earlier pass's reduction.
  std::byte* matrix(ValueId id) const;
};

// Used once, by the driving thread.
class PassRun {
 public:
  PassRun(PassContext& context, SectionState& section, std::size_t pass, const StepSeed& state);
  ~PassRun();  // drains, unless run() came to its end

  // To the end, where all is computed and nothing is under way but rows that are leaving; none are
  // after a section's last pass, nor on a device, whose host's memory is one pass's at a time.
  // False: the driver was stopped.
  bool run();

 private:
  // While one destination range goes through the steps, or its sums go out, the next one may be
  // folded: in memory of its own (Pass::dst_ranges_at_once), or in that of the one before, block
  // after block.
  static constexpr std::size_t kMostDstRanges = 2;

  // Of every other destination range: what its kResident or kAccumulator use holds.
  struct DstRangeRows {
    RowsPlace rows;
    std::unique_ptr<ItemStream> stream;  // kResident
    std::shared_ptr<RowsWriter> writer;  // kAccumulator
  };
  // One use of a tensor, by its role.
  struct Use {
    const TensorUse* planned = nullptr;
    PlannedTensor own;  // of a use without a tensor
    TensorAccess access;
    std::unique_ptr<ItemStream> stream;  // kStreamed, kRows
    RowsLoader* loader = nullptr;        // the stream's
    std::shared_ptr<RowsWriter> writer;  // kOutput
    std::array<DstRangeRows, kMostDstRanges> dst_ranges;
    std::int64_t item_blocks = 0;  // kStreamed, kRows: of the tensor
    std::int64_t dst_range_items =
        0;  // kRows: index of the first item of the destination range whose rows run
    std::int64_t next_dst_range_items = 0;
  };
  // Blocks, and slices of the slice-local tensors: folded, then taken through the steps.
  struct DstRange {
    std::int64_t first_block = 0, end_block = 0;
    std::int64_t first_slice = 0, end_slice = 0;
    std::int64_t sweep = 0;        // destination ranges before it, in all groups of slices
    std::size_t place = 0;         // in Use::dst_ranges
    std::int64_t begun_spans = 0;  // that some group of blocks has taken
    // Items of the edges, by panel and span.
    std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> chunks;
    std::vector<std::int32_t> folded;  // spans, by block and slice
    // By edge reduction and block: sums so far.
    std::vector<std::vector<std::byte*>> partials;
    std::int64_t next_row = 0;   // of the steps, to be handed out
    std::int64_t rows_left = 0;  // to be finished by them
  };
  struct Step;      // rows of the row-wise steps, and where their operands lie
  struct Window;    // spans whose tiles a group of blocks folds at once
  struct EdgeTask;  // a few blocks of a window, one slice of what is slice-local

  // Streams, before the loops.
  void open_uses();
  void open_streamed(Use& use);
  void open_rows(Use& use);
  void open_edges();
  Slots slots(const Region& memory, std::int64_t count) const;
  Slots row_slots(const Use& use) const;
  RowsPlace dst_range_place(const DstRange& dst_range, const Use& use) const;
  std::int64_t slice_end(const DstRange& dst_range, const Use& use) const;
  std::int64_t slice_begin(const DstRange& dst_range, const Use& use) const;
  bool is_sliced(const Use& use) const;

  // Destination ranges.
  bool run_dst_range(const std::shared_ptr<DstRange>& dst_range);
  void take_up_rows(const std::shared_ptr<DstRange>& dst_range);
  bool wait_for_rows(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done);
  bool may_begin(const DstRange& dst_range) const;
  bool is_free(std::size_t place) const;
  bool is_done() const;
  bool has_scratch() const;

  // Rows, of one destination range after the other: handed out as soon as what they need is there.
  std::int64_t first_row(const DstRange& dst_range) const;
  std::int64_t end_row(const DstRange& dst_range) const;
  void begin_rows();
  bool advance_rows();
  bool may_step();
  std::int64_t most_tasks() const;
  std::optional<WaitCause> next_lacks(const DstRange& dst_range);
  std::optional<WaitCause> lacks(const DstRange& dst_range, std::int64_t row, std::int64_t end);
  void begin_step();
  void find_operands(Step& step);
  void compute_group(const Step& step, std::int64_t group);
  void finish_step(const Step& step);
  static std::int64_t item_rows(const Use& use);
  std::int64_t rows_item(const Use& use, std::int64_t row) const;

  // Edges.
  bool propagate_dst_range(const std::shared_ptr<DstRange>& dst_range);
  bool load_resident(const DstRange& dst_range);
  bool load_rows(Window& window);
  bool add_span(std::unique_lock<std::mutex>& lock, Use& use, std::int64_t span, Window& window,
                SlicedRows& rows);
  bool load_edges(Window& window);
  bool fold_window(const std::shared_ptr<Window>& window);
  std::int64_t blocks_a_task(const DstRange& dst_range) const;
  bool has_memory(const DstRange& dst_range, std::int64_t block, std::int64_t slice) const;
  bool hand_out(std::unique_lock<std::mutex>& lock, const EdgeTask& task);
  void finish_task(const EdgeTask& task);
  const Use& use_of(ValueId value, UseRole role) const;
  Use& use_of(ValueId value, UseRole role);
  void bind_edges(Window& window) const;
  void fold(const EdgeTask& task);
  std::byte* row_address(const DstRange& dst_range, const Use& use, std::int64_t row,
                         std::int64_t slice) const;
  SlicedRows rows_at(const DstRange& dst_range, const Use& use, std::int64_t row) const;
  std::int64_t slices_per_block(const DstRange& dst_range) const;
  std::size_t fold_index(const DstRange& dst_range, std::int64_t block, std::int64_t slice) const;
  bool folded(const DstRange& dst_range, std::int64_t block) const;

  bool wait(std::unique_lock<std::mutex>& lock, WaitCause cause,
            const std::function<bool()>& ready);
  bool wait_for_room(std::unique_lock<std::mutex>& lock);
  void advance();
  // Work that calls kernels, and what follows when these are done.
  void launch(std::function<void()> work, std::function<void()> then);
  std::byte* scratch() const;  // of the worker that asks

  PassContext& context_;
  SectionState& section_;
  const BoundPass& bound_;
  const Pass& pass_;
  int index_;  // of the pass, over all sections
  StepSeed state_;
  SpanWindows windows_;
  std::vector<Use> uses_;
  EdgeStore* edge_store_ = nullptr;
  std::unique_ptr<ItemStream> edges_;
  EdgeLoader* edge_loader_ = nullptr;

  std::int64_t edge_item_ = 0;  // the next one
  // Folded, or about to be: their rows, in order. Of the first one the steps are at hand.
  std::deque<std::shared_ptr<DstRange>> rows_;
  WaitCause rows_wait_ = WaitCause::kWorkers;  // what its next step waits for
  bool folds_ = false;                         // tasks of edges are being handed out
  std::set<std::int64_t> rows_begun_;          // first rows of steps that aren't finished
  bool done_ = false;                          // run() came to its end
};

}  // namespace ooc
