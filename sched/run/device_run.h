// One device's side of an executor: its memory, what it keeps there, and the passes over its own
// blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sched/run/executor.h"
#include "sched/run/pass_context.h"
#include "sched/tiers/link.h"

namespace ooc {

// What the devices of a run share; all of it outlives them.
struct SharedRun {
  const RunResources& resources;
  const std::vector<const Program*>& programs;  // by section
  const Plan& plan;
  HostStore* host = nullptr;         // below devices with memory of their own; else null
  std::vector<TensorStore*> stored;  // by the plan's tensors: in storage; null: in none
};

// Threads: what drives a pass is its driving thread's; the rest is one thread's, between passes.
class DeviceRun {
 public:
  // `name`: in a trace.
  DeviceRun(Backend& backend, const SharedRun& shared, const DevicePlan& plan, std::string name);
  ~DeviceRun();
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  Backend& backend() const { return backend_; }
  const DevicePlan& plan() const { return plan_; }
  SectionState& section(int section) const { return *sections_[static_cast<std::size_t>(section)]; }
  Residency& residency() { return residency_; }
  Link* link() { return link_.get(); }  // null: its memory is the host's
  // Rows that edges read span by span go round there from now on.
  void join(DeviceRing& ring, std::int64_t index) {
    context_.ring = &ring;
    context_.index = index;
  }

  // Before a section's passes; `self_loops`: SelfLoops::bits().
  void begin(int section, const std::atomic<bool>* stop, const std::uint64_t* self_loops);
  // The driving thread. False: stopped. What a pass throws passes through.
  bool run_pass(int section, std::size_t pass, const StepSeed& state);
  // Any thread: ends a pass under way on this device with the error of another one.
  void fail(const std::exception_ptr& error) { driver_.expect({})(error); }
  // After an epoch that was given up. Waits for the rows that a pass left behind.
  void reset();
  // Counters since the last call; over the link, or to and from storage where that is below.
  RunCounters take_counters();

 private:
  void drain();
  void open_stores(const SharedRun& shared);
  // Places in the arena that mapped rows and edges never take.
  void leave_mapped_empty();
  // Takes the memory of its partial sums from `slab` on.
  void bind_section(const Program& program, const Section& section, std::byte*& slab);

  Backend& backend_;
  const Plan& all_;
  const DevicePlan& plan_;
  std::unique_ptr<DeviceBuffer> arena_;
  RunClock& clock_;
  Driver driver_;
  std::unique_ptr<Link> link_;  // null: its memory is the host's
  std::unique_ptr<HostClient> client_;
  Residency residency_;
  EdgeStore in_;
  std::unique_ptr<EdgeStore> own_out_;                // null: both directions are one file
  std::unique_ptr<DeviceBuffer> partials_;            // of all reductions
  std::unique_ptr<QueueWatcher> compute_;             // null: kernels run inline
  std::vector<std::unique_ptr<TensorStore>> cached_;  // above what is stored, in host memory
  PassContext context_;
  std::vector<std::unique_ptr<SectionState>> sections_;
};

}  // namespace ooc
