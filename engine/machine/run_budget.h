// What memory a run may take, and what its plans are made with.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "engine/machine/topology.h"
#include "sched/plan/plan.h"

namespace ooc {

// What a run may take.
struct RunBudget {
  std::int64_t host_bytes = 0;  // of the whole process; 0: no limit
  std::int64_t resident_bytes =
      0;                          // of it the process holds already (engine/machine/host_memory.h)
  std::int64_t device_bytes = 0;  // of a device with memory of its own (plan.device); 0: no limit
  // Of it, what is taken before anything is allocated for the run.
  std::int64_t device_resident_bytes = 0;
  // Free where temporary files go: how many batches are made together follows from it.
  std::int64_t scratch_bytes = std::numeric_limits<std::int64_t>::max();
  std::int64_t link_rate = 0;  // bytes a second that its link is held to; 0: no limit
  std::shared_ptr<const Topology> topology = {};  // null: each device has a link of its own
  // Workers, rates, and for tests splits; the rest follows from the budget and the configuration.
  PlanOptions plan = {};
};

}  // namespace ooc
