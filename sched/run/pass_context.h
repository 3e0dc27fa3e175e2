// What the passes of an executor share, and what those of a section do.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kernels/device/backend.h"
#include "sched/devices/device_ring.h"
#include "sched/run/bound_pass.h"
#include "sched/run/reduction_tree.h"
#include "sched/stream/edge_loader.h"
#include "sched/stream/hazards.h"
#include "sched/stream/pending_writes.h"
#include "sched/stream/rows_loader.h"
#include "sched/tiers/host_store.h"
#include "sched/tiers/residency.h"
#include "sched/workers/driver.h"
#include "sched/workers/queue_watcher.h"

namespace ooc {

struct PassContext {
  Backend& backend;
  const EdgeLayout& edges;
  const Plan& plan;
  const DevicePlan& device;  // the plan's
  std::byte* arena = nullptr;
  Driver& driver;
  Residency& residency;
  std::vector<TensorStore*> stores;  // by the plan's tensors; null: in none
  EdgeStore& in;
  EdgeStore& out;
  HostStore* host = nullptr;                  // below a device; null: the stores are storage's
  QueueWatcher* compute = nullptr;            // null: the device runs kernels inline
  DeviceRing* ring = nullptr;                 // null: streamed rows come from the stores
  std::int64_t index = 0;                     // in the ring
  Trace* trace = nullptr;                     // null: nobody asked for one
  std::string name{};                         // the device's, in it
  const std::uint64_t* self_loops = nullptr;  // device memory; a bit a vertex (SelfLoops)
  MovedBytes moved{};
  PendingWrites leaving{};
  Hazards hazards{};
};

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

// One pass of a section at work.
struct PassInfo {
  PassContext& context;
  SectionState& section;
  const BoundPass& bound;
  const Pass& pass;
  const PassMemory& memory;
  int index = 0;  // over all sections
  StepSeed state;

  // Of a propagation.
  EdgeStore& edge_store() const {
    return pass.propagation.direction == Direction::kIn ? context.in : context.out;
  }
};

}  // namespace ooc
