#include "kernels/rows/row_work_cuda.h"

#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/launch_cuda.h"
#include "kernels/rows/cuda_row_kernels.h"
#include "kernels/rows/row_groups.h"
#include "storage/base/errors.h"
#include "storage/base/half.h"

namespace ooc::cuda {
namespace {

__device__ inline float wide(float value) { return value; }
__device__ inline float wide(Half value) { return to_float(value); }
__device__ inline float wide(BFloat16 value) { return to_float(value); }

// Elements beside each other, padding too.
template <class From, class To>
__global__ void __launch_bounds__(kThreads, 4)
    widen_elements(std::int64_t count, To* __restrict__ to, const From* __restrict__ from) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride) {
    to[i] = wide(from[i]);
  }
}

template <class From, class To>
void launch_widen(std::int64_t count, void* to, const void* from, cudaStream_t stream) {
  launch(widen_elements<From, To>, shape_for(count), stream, count, static_cast<To*>(to),
         static_cast<const From*>(from));
}

template <class From>
void widen_to(DType to, std::int64_t count, void* out, const void* in, cudaStream_t stream) {
  if (to == DType::kF32) return launch_widen<From, float>(count, out, in, stream);
  launch_widen<From, double>(count, out, in, stream);
}

void widen(DType from, const void* in, DType to, void* out, std::int64_t count,
           cudaStream_t stream) {
  OOC_CHECK(is_feature_dtype(from) && (to == DType::kF32 || to == DType::kF64));
  if (from == DType::kF32) return widen_to<float>(to, count, out, in, stream);
  if (from == DType::kF16) return widen_to<Half>(to, count, out, in, stream);
  widen_to<BFloat16>(to, count, out, in, stream);
}

class CudaRowWork final : public RowWork {
 public:
  CudaRowWork(RowProgram program, cudaStream_t stream)
      : groups_(std::move(program)), stream_(stream) {
    for (const RowProgram::Step& step : groups_.program().steps) {
      kernels_.push_back(row_kernel(step.op, groups_.program().real));
      if (kernels_.back() != nullptr) continue;
      check_failed(("there is no CUDA kernel of " + step.op).c_str(), __FILE__, __LINE__);
    }
  }

  void run(const RowCall& call) const override {
    groups_.run(
        call,
        [this](const RowProgram::Operand& operand, const void* rows, void* to, std::int64_t count) {
          widen(operand.stored, rows, operand.dtype, to, count, stream_);
        },
        [this](std::size_t step, const OperatorCall& rows) { kernels_[step](rows, stream_); });
  }

 private:
  RowGroups groups_;
  cudaStream_t stream_;
  std::vector<RowKernel> kernels_;  // by step
};

}  // namespace

std::unique_ptr<RowWork> make_row_work(RowProgram program, cudaStream_t stream) {
  return std::make_unique<CudaRowWork>(std::move(program), stream);
}

}  // namespace ooc::cuda
