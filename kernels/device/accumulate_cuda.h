// How partial reductions are merged on a GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/device/backend.h"

namespace ooc::cuda {

// As Backend::accumulate(), on the stream.
void accumulate(DType dtype, std::int64_t count, void* to, const void* from, cudaStream_t stream);

// As Backend::sum_leaves().
void sum_leaves(const LeafSum& sum, cudaStream_t stream);

}  // namespace ooc::cuda
