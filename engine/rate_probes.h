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
// Bytes that element-wise operators read and write, row group after row group.
double elementwise_rate(const RateOptions& options);
// Multiply-adds of products of rows with a matrix.
double multiply_rate(const RateOptions& options);

}  // namespace ooc
