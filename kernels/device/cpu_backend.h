// The CPU as a device: device memory is host memory, copies are memcpy, kernels run on the calling
// thread (parallelism is the executor's, through TBB).
#pragma once

#include "kernels/device/backend.h"

namespace ooc {

std::unique_ptr<Backend> make_cpu_backend();

// The kernel of an operator for a scalar type (fp32 or fp64). A name without one is a programmer's
// mistake.
RowKernel cpu_row_kernel(std::string_view op, DType dtype);

// Adds a row kernel to all CPU backends under a new name. Built-in kernels are there already.
// Call it before any program that uses it is built; not thread-safe.
void register_cpu_row_kernel(std::string_view op, RowKernel fp32, RowKernel fp64);

}  // namespace ooc
