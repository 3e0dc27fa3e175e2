// The CPU as a device: device memory is host memory, copies are memcpy, kernels run on the calling
// thread (parallelism is the executor's, through TBB).
#pragma once

#include "kernels/device/backend.h"

namespace ooc {

std::unique_ptr<Backend> make_cpu_backend();

// Adds a row kernel to every CPU backend under a new name. Built-in kernels are there already.
// Call it before any program that uses it is built; not thread-safe.
void register_cpu_row_kernel(std::string_view op, RowKernel fp32, RowKernel fp64);

}  // namespace ooc
