// The CPU's implementations of the operators in kernels/spec/row_kernels.h, for float and double.
// Their operands have been checked (check_call).
#pragma once

#include "kernels/spec/operator.h"

// clang-format off
// All of them, by the file that holds them.
#define OOC_CPU_ROW_KERNELS(KERNEL)                                                               \
  /* dense_cpu.cc */                                                                              \
  KERNEL(matmul) KERNEL(matmul_reduce) KERNEL(bias) KERNEL(column_sum)                            \
  /* elementwise_cpu.cc */                                                                        \
  KERNEL(add) KERNEL(sub) KERNEL(mul) KERNEL(affine) KERNEL(maximum) KERNEL(maximum_gradient)     \
  KERNEL(relu) KERNEL(relu_gradient) KERNEL(scale_rows)                                           \
  /* bits_cpu.cc */                                                                               \
  KERNEL(positive_bits) KERNEL(keep_bits)                                                         \
  /* activations_cpu.cc */                                                                        \
  KERNEL(sigmoid) KERNEL(sigmoid_gradient) KERNEL(tanh) KERNEL(tanh_gradient)                     \
  KERNEL(leaky_relu) KERNEL(leaky_relu_gradient) KERNEL(elu) KERNEL(elu_gradient)                 \
  KERNEL(gelu) KERNEL(gelu_gradient) KERNEL(exp)                                                  \
  /* column_scales_cpu.cc */                                                                      \
  KERNEL(scale_cols) KERNEL(mul_column_sum) KERNEL(scale_by) KERNEL(dot_sum)                      \
  /* copy_cpu.cc */                                                                                \
  KERNEL(copy) KERNEL(copy_ids) KERNEL(first_rows) KERNEL(extend_rows) KERNEL(edge_key)            \
  /* heads_cpu.cc */                                                                              \
  KERNEL(scale_heads) KERNEL(head_dot) KERNEL(head_sum) KERNEL(head_broadcast)                    \
  KERNEL(heads_mean) KERNEL(heads_spread) KERNEL(softmax_normalize)                               \
  /* columns_cpu.cc */                                                                            \
  KERNEL(concat) KERNEL(columns) KERNEL(place_columns) KERNEL(pick_type) KERNEL(place_type)       \
  /* vertex_data_cpu.cc */                                                                        \
  KERNEL(degree_factor) KERNEL(inverse) KERNEL(inverse_sqrt) KERNEL(count_zeros)                  \
  KERNEL(binary_label)                                                                            \
  /* gru_cpu.cc */                                                                                \
  KERNEL(gru) KERNEL(gru_input_gradient) KERNEL(gru_hidden_gradient) KERNEL(gru_state_gradient)   \
  /* edge_values_cpu.cc */                                                                        \
  KERNEL(softmax_weight) KERNEL(edge_dropout) KERNEL(winner_key) KERNEL(select_winner)            \
  /* dropout_cpu.cc */                                                                            \
  KERNEL(dropout)                                                                                 \
  /* layer_norm_cpu.cc */                                                                         \
  KERNEL(layer_norm) KERNEL(layer_norm_gradient) KERNEL(layer_norm_gamma_gradient)                \
  /* batch_norm_cpu.cc */                                                                         \
  KERNEL(batch_norm_sums) KERNEL(batch_norm) KERNEL(batch_norm_gamma_gradient)                    \
  KERNEL(batch_norm_gradient) KERNEL(batch_norm_inference)                                        \
  /* loss_cpu.cc */                                                                               \
  KERNEL(softmax_cross_entropy) KERNEL(softmax_cross_entropy_gradient)                            \
  KERNEL(softmax_cross_entropy_weighted) KERNEL(softmax_cross_entropy_weighted_gradient)          \
  /* sigmoid_loss_cpu.cc */                                                                       \
  KERNEL(sigmoid_cross_entropy) KERNEL(sigmoid_cross_entropy_gradient)                            \
  KERNEL(sigmoid_cross_entropy_weighted) KERNEL(sigmoid_cross_entropy_weighted_gradient)          \
  /* value_loss_cpu.cc */                                                                         \
  KERNEL(value_loss) KERNEL(value_loss_gradient)
// clang-format on

namespace ooc::cpu {

#define OOC_DECLARE(name) \
  template <class T>      \
  void name(const OperatorCall& call);
OOC_CPU_ROW_KERNELS(OOC_DECLARE)
#undef OOC_DECLARE

}  // namespace ooc::cpu
