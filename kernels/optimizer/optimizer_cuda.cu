#include "kernels/optimizer/optimizer_cuda.h"

#include "kernels/cuda/launch_cuda.h"
#include "kernels/optimizer/optimizer_scalars.h"
#include "storage/base/errors.h"

namespace ooc::cuda {
namespace {

template <class T>
__global__ void adam(std::int64_t count, T* __restrict__ parameter, const T* __restrict__ gradient,
                     T* __restrict__ m, T* __restrict__ v, AdamScalars<T> scalars) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    adam_element(parameter[i], gradient[i], m[i], v[i], scalars);
  }
}

template <class T>
__global__ void sgd(std::int64_t count, T* __restrict__ parameter, const T* __restrict__ gradient,
                    T* __restrict__ m, SgdScalars<T> scalars) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    sgd_element(parameter[i], gradient[i], m[i], scalars);
  }
}

template <class T>
void optimize_elements(const OptimizerStep& step, cudaStream_t stream) {
  auto* parameter = static_cast<T*>(step.parameter);
  const auto* gradient = static_cast<const T*>(step.gradient);
  auto* m = static_cast<T*>(step.m);
  const LaunchShape shape = shape_for(step.count);
  if (step.kind == OptimizerKind::kSgd) {
    return launch(sgd<T>, shape, stream, step.count, parameter, gradient, m, sgd_scalars<T>(step));
  }
  launch(adam<T>, shape, stream, step.count, parameter, gradient, m, static_cast<T*>(step.v),
         adam_scalars<T>(step));
}

}  // namespace

void optimize(const OptimizerStep& step, cudaStream_t stream) {
  OOC_CHECK(step.step >= 1);
  OOC_CHECK(step.dtype == DType::kF32 || step.dtype == DType::kF64);
  if (step.count == 0) return;
  if (step.dtype == DType::kF32) {
    optimize_elements<float>(step, stream);
  } else {
    optimize_elements<double>(step, stream);
  }
}

}  // namespace ooc::cuda
