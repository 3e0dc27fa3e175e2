// What passes take on a machine: the predictions in seconds.
#pragma once

#include "sched/plan_access.h"

namespace ooc {

// Of one pass, over all vertices and edges.
struct PassWork {
  double gather_bytes = 0;
  double elementwise_bytes = 0;
  double multiply_adds = 0;
};
PassWork work_of(const PassBuilder& builder, const PassDraft& pass);

// Of all workers.
double compute_seconds(const PassWork& work, const MachineRates& rates);
// Of storage, with many transfers at once in both directions.
double storage_seconds(const Traffic& traffic, const MachineRates& rates);

}  // namespace ooc
