// Row programs on a GPU: step by step, group after group, a kernel each.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "kernels/spec/row_program.h"

namespace ooc::cuda {

// On the stream, which outlives it. An operator without a kernel is a programmer's mistake.
std::unique_ptr<RowWork> make_row_work(RowProgram program, cudaStream_t stream);

}  // namespace ooc::cuda
