// A GPU's edge programs: a window's edges are sorted by row once, then summed slice by slice.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "kernels/cuda/argument_ring_cuda.h"
#include "kernels/spec/edge_program.h"

namespace ooc::cuda {

// On the ring's stream; the ring outlives it. DeviceError for a program that isn't a plain sum
// (is_plain_sum()).
std::unique_ptr<EdgeWork> make_edge_work(const EdgeProgram& program, ArgumentRing& ring);

}  // namespace ooc::cuda
