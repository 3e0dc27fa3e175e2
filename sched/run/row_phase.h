// The row-wise work of a pass: rows of one destination range after the other through the steps, as
// soon as what they need is there.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "sched/run/dst_range.h"
#include "sched/run/pass_loop.h"
#include "sched/run/pass_streams.h"

namespace ooc {

// The driving thread, under the driver's lock; may_step() any thread with it.
class RowPhase {
 public:
  // All of it outlives the phase.
  RowPhase(const PassInfo& info, PassStreams& streams, PassLoop& loop);

  // The rows of a destination range, after those of the ones before.
  void take_up(const std::shared_ptr<DstRange>& dst_range);
  // Hands out the steps that can begin. Whether one did.
  bool advance();
  // Whether advance() would begin a step; what it makes has its place from then on.
  bool may_step();
  // Destination ranges whose rows aren't all done.
  std::size_t under_way() const { return dst_ranges_.size(); }
  bool is_first(const DstRange* dst_range) const {
    return !dst_ranges_.empty() && dst_ranges_.front().get() == dst_range;
  }
  // What the next step waits for.
  WaitCause waits_for() const { return waits_for_; }
  // Whether tasks of edges are being handed out, to which half of the workers' queue is left.
  void set_folds(bool folds) { folds_ = folds; }

 private:
  struct Step;    // rows beside each other, and where their operands lie
  struct Batch;   // steps that are taken up at once
  struct Groups;  // of a call

  std::int64_t first_row(const DstRange& dst_range) const;
  std::int64_t end_row(const DstRange& dst_range) const;
  std::int64_t item_of(const PassUse& use, const DstRange& dst_range, std::int64_t row) const;
  void begin_rows();
  std::int64_t most_tasks() const;
  std::optional<WaitCause> next_lacks(const DstRange& dst_range);
  std::optional<WaitCause> lacks(const DstRange& dst_range, std::int64_t row, std::int64_t end);
  bool is_folded(const DstRange& dst_range, std::int64_t block) const;
  std::int64_t end_of_batch(const DstRange& dst_range) const;
  void begin_batch();
  void hold_items(const DstRange& dst_range, const Step& step);
  void find_operands(const DstRange& dst_range, Step& step);
  std::vector<Groups> calls_of(const Batch& batch) const;
  double seconds_of(const Groups& groups) const;  // of a device that isn't there
  std::int64_t leaf_of(const Step& step, std::int64_t group) const;
  void compute(const Groups& groups);
  void finish_batch(const Batch& batch);

  const PassInfo& info_;
  PassStreams& streams_;
  PassLoop& loop_;
  // In order; of the first one the steps are at hand.
  std::deque<std::shared_ptr<DstRange>> dst_ranges_;
  WaitCause waits_for_ = WaitCause::kWorkers;
  bool folds_ = false;
  std::set<std::int64_t> begun_;  // first rows of batches that aren't finished
};

}  // namespace ooc
