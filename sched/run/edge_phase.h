// The edge work of a pass: one group of blocks of a destination range after the other takes a
// window of spans.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "sched/plan/span_windows.h"
#include "sched/run/dst_range.h"
#include "sched/run/pass_loop.h"
#include "sched/run/pass_streams.h"
#include "sched/run/row_phase.h"

namespace ooc {

// The driving thread.
class EdgePhase {
 public:
  // All of it outlives the phase.
  EdgePhase(const PassInfo& info, const SpanWindows& windows, PassStreams& streams, PassLoop& loop,
            RowPhase& rows);

  // Hands out the folds of a destination range, and gives its rows to the row phase, which goes on
  // with them. False: stopped.
  bool run(const std::shared_ptr<DstRange>& dst_range);
  // Whether a destination range may begin beside those whose rows aren't done.
  bool may_begin() const;

 private:
  struct Window;    // spans whose tiles a group of blocks folds at once
  struct EdgeTask;  // a few blocks of a window, and slices of what is slice-local

  bool load_resident(DstRange& dst_range);
  bool load_rows(Window& window);
  bool load_span(std::unique_lock<std::mutex>& lock, const PassUse& use, std::int64_t place,
                 Window& window, SlicedRows& rows);
  bool load_edges(Window& window);
  bool fold_window(const std::shared_ptr<Window>& window);
  void bind(Window& window) const;
  std::int64_t blocks_a_task(const DstRange& dst_range) const;
  double seconds_of(const EdgeTask& task) const;  // of a device that isn't there
  bool take_memory(const DstRange& dst_range, std::int64_t block);
  bool hand_out(std::unique_lock<std::mutex>& lock, const EdgeTask& task);
  void fold(const EdgeTask& task);
  void finish(const EdgeTask& task);
  std::int64_t slices_per_block(const DstRange& dst_range) const;
  std::size_t fold_index(const DstRange& dst_range, std::int64_t block, std::int64_t slice) const;

  const PassInfo& info_;
  const SpanWindows& windows_;
  PassStreams& streams_;
  PassLoop& loop_;
  RowPhase& rows_;
  std::int64_t edge_item_ = 0;   // the next one
  std::int64_t file_bytes_ = 1;  // of all edges, for devices that aren't there
};

}  // namespace ooc
