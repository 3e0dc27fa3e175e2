// One pass on its way: destination range after destination range is folded and taken through the
// steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "sched/plan/span_windows.h"
#include "sched/run/edge_phase.h"
#include "sched/run/pass_context.h"
#include "sched/run/pass_loop.h"
#include "sched/run/pass_streams.h"
#include "sched/run/row_phase.h"

namespace ooc {

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
  bool run_dst_range();
  bool skip_sweep();  // of another device of the ring
  bool wait_for_rows(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done);
  bool is_done() const;
  void advance();

  PassInfo info_;
  SpanWindows windows_;
  PassStreams streams_;
  PassLoop loop_;
  RowPhase rows_;
  EdgePhase edges_;
  std::shared_ptr<DstRange> dst_range_;  // begun last: its reads outlive a run that is given up
  bool done_ = false;                    // run() came to its end
};

}  // namespace ooc
