#include "kernels/rows/cuda_row_kernels.h"

namespace ooc::cuda {

RowKernel row_kernel(std::string_view op, DType dtype) {
  const bool fp32 = dtype == DType::kF32;
  if (!fp32 && dtype != DType::kF64) return nullptr;
#define OOC_KERNEL(name) \
  if (op == #name) return fp32 ? RowKernel{name<float>} : RowKernel{name<double>};
  OOC_CUDA_ROW_KERNELS(OOC_KERNEL)
#undef OOC_KERNEL
  return nullptr;
}

}  // namespace ooc::cuda
