#include "kernels/device/accumulate_cuda.h"

#include "kernels/cuda/launch_cuda.h"
#include "storage/base/errors.h"

namespace ooc::cuda {
namespace {

template <class T>
__global__ void add(std::int64_t count, T* __restrict__ to, const T* __restrict__ from) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    to[i] += from[i];
  }
}

// Leaves of a tree of 2^kLevel, `stride` elements apart.
template <class T, int kLevel>
__device__ T tree_sum(const T* __restrict__ leaf, std::int64_t stride) {
  if constexpr (kLevel == 0) {
    return *leaf;
  } else {
    const T left = tree_sum<T, kLevel - 1>(leaf, stride);
    return left + tree_sum<T, kLevel - 1>(leaf + (stride << (kLevel - 1)), stride);
  }
}

template <class T, int kLevel>
__global__ void __launch_bounds__(kThreads, 2)
    sum_tree(std::int64_t count, T* __restrict__ to, const T* __restrict__ from,
             std::int64_t stride) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    to[i] = tree_sum<T, kLevel>(from + i, stride);
  }
}

template <class T, int kLevel = 0>
void launch_tree(const LeafSum& sum, cudaStream_t stream) {
  if constexpr (kLevel <= kMostLeavesLevel) {
    if (sum.leaves != std::int64_t{1} << kLevel) return launch_tree<T, kLevel + 1>(sum, stream);
    launch(sum_tree<T, kLevel>, shape_for(sum.count), stream, sum.count,
           reinterpret_cast<T*>(sum.to), reinterpret_cast<const T*>(sum.from),
           sum.stride / static_cast<std::int64_t>(sizeof(T)));
  } else {
    OOC_CHECK(false && "a power of two of leaves");
  }
}

template <class T>
void launch_add(std::int64_t count, void* to, const void* from, cudaStream_t stream) {
  launch(add<T>, shape_for(count), stream, count, static_cast<T*>(to), static_cast<const T*>(from));
}

}  // namespace

void accumulate(DType dtype, std::int64_t count, void* to, const void* from, cudaStream_t stream) {
  OOC_CHECK(dtype == DType::kF32 || dtype == DType::kF64);
  if (count == 0) return;
  if (dtype == DType::kF32) {
    launch_add<float>(count, to, from, stream);
  } else {
    launch_add<double>(count, to, from, stream);
  }
}

void sum_leaves(const LeafSum& sum, cudaStream_t stream) {
  OOC_CHECK(sum.dtype == DType::kF32 || sum.dtype == DType::kF64);
  if (sum.count == 0) return;
  sum.dtype == DType::kF32 ? launch_tree<float>(sum, stream) : launch_tree<double>(sum, stream);
}

}  // namespace ooc::cuda
