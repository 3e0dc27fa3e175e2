// What the threads of a block work out together.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/launch_cuda.h"

namespace ooc::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kWarps = kThreads / 32;

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

// Inclusive scan of the values of a block's kThreads threads, in their order; `fold` is
// associative. All threads of the block call it. `shared`: of the block, for one scan at a time.
template <class T>
struct ScanMemory {
  T warp_totals[kWarps];
  T last;
};
template <class T, class Fold>
__device__ T block_scan(T value, Fold fold, ScanMemory<T>& shared) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const T other = __shfl_up_sync(kAllLanes, value, distance);
    if (lane >= distance) value = fold(other, value);
  }
  __syncthreads();  // whoever still reads what the scan before left
  if (lane == 31) shared.warp_totals[warp] = value;
  __syncthreads();
  if (warp > 0) {
    T before = shared.warp_totals[0];
    for (unsigned w = 1; w < warp; ++w) before = fold(before, shared.warp_totals[w]);
    value = fold(before, value);
  }
  if (threadIdx.x == kThreads - 1) shared.last = value;
  __syncthreads();
  return value;
}

}  // namespace ooc::cuda
