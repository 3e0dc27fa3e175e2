// A GPU's implementations of the operators in kernels/spec/row_kernels.h, for float and double.
// Their operands have been checked (check_call), and lie in the device's memory.
#pragma once

#include <cuda_runtime.h>

#include <string_view>

#include "kernels/rows/group_view_cuda.h"

// clang-format off
#define OOC_CUDA_ROW_KERNELS(KERNEL)                                                              \
  /* dense_cuda.cu */                                                                             \
  KERNEL(matmul) KERNEL(matmul_reduce)                                                            \
  /* elementwise_cuda.cu */                                                                       \
  KERNEL(add) KERNEL(sub) KERNEL(mul) KERNEL(affine) KERNEL(maximum) KERNEL(maximum_gradient)     \
  KERNEL(relu) KERNEL(relu_gradient) KERNEL(scale_rows)                                           \
  /* activations_cuda.cu */                                                                       \
  KERNEL(sigmoid) KERNEL(sigmoid_gradient) KERNEL(tanh) KERNEL(tanh_gradient)                     \
  KERNEL(leaky_relu) KERNEL(leaky_relu_gradient) KERNEL(elu) KERNEL(elu_gradient)                 \
  KERNEL(gelu) KERNEL(gelu_gradient) KERNEL(exp)                                                  \
  /* bits_cuda.cu */                                                                              \
  KERNEL(positive_bits) KERNEL(keep_bits)                                                         \
  /* column_scales_cuda.cu */                                                                     \
  KERNEL(bias) KERNEL(scale_cols) KERNEL(scale_by) KERNEL(column_sum) KERNEL(mul_column_sum)      \
  KERNEL(dot_sum)                                                                                 \
  /* columns_cuda.cu */                                                                           \
  KERNEL(copy) KERNEL(concat) KERNEL(columns) KERNEL(place_columns) KERNEL(pick_type)             \
  KERNEL(place_type)                                                                              \
  /* vertex_data_cuda.cu */                                                                       \
  KERNEL(degree_factor) KERNEL(inverse) KERNEL(inverse_sqrt) KERNEL(count_zeros)                  \
  KERNEL(binary_label)                                                                            \
  /* dropout_cuda.cu */                                                                           \
  KERNEL(dropout)                                                                                 \
  /* loss_cuda.cu */                                                                              \
  KERNEL(softmax_cross_entropy) KERNEL(softmax_cross_entropy_gradient)                            \
  KERNEL(softmax_cross_entropy_weighted) KERNEL(softmax_cross_entropy_weighted_gradient)
// clang-format on

namespace ooc::cuda {

// On the stream. Groups of any number of rows but 0.
using RowKernel = void (*)(const GroupCall& call, cudaStream_t stream);
// Null: there is none of this name.
RowKernel row_kernel(std::string_view op, DType dtype);

#define OOC_DECLARE(name) \
  template <class T>      \
  void name(const GroupCall& call, cudaStream_t stream);
OOC_CUDA_ROW_KERNELS(OOC_DECLARE)
#undef OOC_DECLARE

}  // namespace ooc::cuda
