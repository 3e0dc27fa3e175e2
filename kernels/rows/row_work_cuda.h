// Row programs on a GPU: step by step, a kernel each for all groups of a call.
#pragma once

#include <memory>

#include "kernels/cuda/argument_ring_cuda.h"
#include "kernels/spec/row_program.h"

namespace ooc::cuda {

// On the ring's stream; the ring outlives it. DeviceError for an operator without a kernel.
std::unique_ptr<RowWork> make_row_work(RowProgram program, ArgumentRing& ring);

}  // namespace ooc::cuda
