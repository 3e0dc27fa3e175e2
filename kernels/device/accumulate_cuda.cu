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

}  // namespace ooc::cuda
