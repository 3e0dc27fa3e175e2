// What passes take on a machine: the predictions in seconds.
#pragma once

#include "sched/plan_access.h"

namespace ooc {

// Of one pass, over all vertices and edges.
struct PassWork {
  double gather_bytes = 0;
  double elementwise_bytes = 0;
  double dropout_elements = 0;  // what takes as long as so many
  double products = 0;          // of rows with a matrix: product_work (plan_stages.h)
  double row_sums = 0;          // of those summed over rows
};
PassWork work_of(const PassBuilder& builder, const PassDraft& pass);

// Of all workers.
double compute_seconds(const PassWork& work, const MachineRates& rates);
// Of a pass of which so much is transfers and so much compute, with room for so many times what is
// worked on at once (`depth`, at least 1): one share of it is not overlapped.
double overlapped_seconds(double transfers, double compute, double depth);

// Bytes in a second to and from the memory below: read, written, and together, where both go on.
struct TransferRates {
  double read = 0, write = 0, both = 0;
};
TransferRates storage_rates(const MachineRates& rates);
TransferRates link_rates(const MachineRates& rates);  // either direction has its own lanes
double transfer_seconds(const Traffic& traffic, const TransferRates& rates);

}  // namespace ooc
