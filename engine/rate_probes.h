// What machine_rates.h measures, one by one.
#pragma once

#include "engine/machine_rates.h"

namespace ooc {

// Sets the rates of storage: a temporary file written, read, and both at once, in large requests of
// which many are under way, into buffers as an executor has them. Leaves them as they are where
// there is no room for a file. IoError where it can't be written or read.
void probe_storage(BlockIo& io, const RateOptions& options, MachineRates& rates);
// Bytes as plans count them for the edges of a graph (plan_stages.h: gather_bytes_of_edge), a
// second, of a small one whose rows no cache holds.
double gather_rate(const RateOptions& options);
// Sets the rates of the rows' work: element-wise operators, products with a matrix, products summed
// over rows.
void probe_rows(const RateOptions& options, MachineRates& rates);

}  // namespace ooc
