// Optimiser steps on a GPU.
#pragma once

#include <cuda_runtime.h>

#include "kernels/spec/optimizer.h"

namespace ooc::cuda {

// On the stream; arrays are the device's.
void optimize(const OptimizerStep& step, cudaStream_t stream);

}  // namespace ooc::cuda
