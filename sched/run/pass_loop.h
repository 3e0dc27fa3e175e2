// How the parts of a pass at work wait and hand out: by one driving thread, which keeps transfers
// and steps going meanwhile.
#pragma once

#include <functional>
#include <mutex>
#include <span>

#include "sched/run/pass_context.h"

namespace ooc {

class PassLoop {
 public:
  // `advance`: begins what can begin; `may_advance`: whether it would begin a step, which any
  // thread may ask. Both under the driver's lock. `info` and all that it refers to outlive it.
  PassLoop(const PassInfo& info, std::function<void()> advance, std::function<bool()> may_advance);

  // The driving thread, with the driver's lock, as Driver::wait() and wait_for_room(). False:
  // stopped.
  bool wait(std::unique_lock<std::mutex>& lock, WaitCause cause,
            const std::function<bool()>& ready);
  bool wait_for_room(std::unique_lock<std::mutex>& lock);

  // The driving thread. Work that calls kernels, and what follows, under the driver's lock, when
  // these are done. `name`: a literal, for a trace. `seconds`: what a device that isn't there takes
  // for it, all of its workers together.
  void launch(const char* name, double seconds, std::function<void()> work,
              std::function<void()> then);
  // In such work: a worker's scratch, or all of a device's.
  std::span<std::byte> scratch() const;
  // Whether nothing else is under way in the scratch.
  bool has_scratch() const;

 private:
  // Instead of work on a device that isn't there.
  void simulate(const char* name, double seconds, std::function<void()> then);
  std::function<void()> traced(const char* name, std::function<void()> work) const;
  std::function<void()> computed(const char* name, std::function<void()> then);

  const PassInfo& info_;
  std::function<void()> advance_;
  std::function<bool()> may_advance_;
  Trace::Time computed_{};  // when the device had done what it did last
};

}  // namespace ooc
