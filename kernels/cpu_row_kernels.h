// The CPU's implementations of the operators in kernels/row_kernels.h, for float and double. Their
// operands have been checked (check_call).
#pragma once

#include "kernels/operator.h"

namespace ooc::cpu {

// dense_cpu.cc
template <class T>
void matmul(const OperatorCall& call);
template <class T>
void matmul_reduce(const OperatorCall& call);
template <class T>
void bias(const OperatorCall& call);
template <class T>
void column_sum(const OperatorCall& call);

// elementwise_cpu.cc
template <class T>
void add(const OperatorCall& call);
template <class T>
void relu(const OperatorCall& call);
template <class T>
void relu_gradient(const OperatorCall& call);
template <class T>
void scale_rows(const OperatorCall& call);

// copy_cpu.cc
template <class T>
void copy(const OperatorCall& call);
template <class T>
void copy_ids(const OperatorCall& call);
template <class T>
void edge_key(const OperatorCall& call);

// dropout_cpu.cc
template <class T>
void dropout(const OperatorCall& call);

// layer_norm_cpu.cc
template <class T>
void layer_norm(const OperatorCall& call);
template <class T>
void layer_norm_gradient(const OperatorCall& call);
template <class T>
void layer_norm_gamma_gradient(const OperatorCall& call);

// batch_norm_cpu.cc
template <class T>
void batch_norm_sums(const OperatorCall& call);
template <class T>
void batch_norm(const OperatorCall& call);
template <class T>
void batch_norm_gamma_gradient(const OperatorCall& call);
template <class T>
void batch_norm_gradient(const OperatorCall& call);
template <class T>
void batch_norm_inference(const OperatorCall& call);

// loss_cpu.cc
template <class T>
void softmax_cross_entropy(const OperatorCall& call);
template <class T>
void softmax_cross_entropy_gradient(const OperatorCall& call);

}  // namespace ooc::cpu
