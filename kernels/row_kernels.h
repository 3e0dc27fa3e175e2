// The built-in row operators: what every backend provides, and what each is called with.
//
// An operand is written NAME[rows,cols]. Rows `n` make a vertex operand: the row group's rows, in
// slices of kSliceWidth columns. Anything else is a parameter or a reduction: one contiguous slice.
// The same letter is the same extent. Unless said otherwise an operand has the program's scalar
// type T (fp32 or fp64). Operators marked `reduces` add to their output over the rows, in order;
// the others overwrite theirs. Sums over many rows stay in T; losses, metrics and the statistics of
// norms are computed in double. The maths of one element is in kernels/element_math.h.
//
// Dense
//   matmul          X[n,k] W[k,m] -> Y[n,m]          Y = X W; transpose: W is [m,k], Y = X W^T
//   matmul_reduce   X[n,k] G[n,m] -> R[k,m]          R += X^T G                          reduces
//   bias            X[n,d] b[1,d] -> Y[n,d]          Y = X + b
//   column_sum      X[n,d] -> R[1,d]                 R += sum of rows                    reduces
// Element-wise
//   add             A[n,d] B[n,d] -> Y[n,d]
//   relu            X[n,d] -> Y[n,d]                 NaN stays NaN
//   relu_gradient   G[n,d] Y[n,d] -> dX[n,d]         Y: relu's output
//   dropout         X[n,d] ids[n,1] int64 -> Y[n,d]  value = p, key. Y = X mask / (1 - p); the mask
//                   is a function of (run.seed, run.epoch, key, original id, column) alone. The
//                   gradient is the same operator applied to the gradient.
//   scale_rows      X[n,d] f[n,1] -> Y[n,d]          Y_i = f_i X_i
//   copy            X[n,d] -> Y[n,d]; copy_ids: of int64
//   edge_key        s[n,1] t[n,1] i[n,1] int64 -> K[n,3] int64: side by side
// Norms. value = epsilon. Batch norm: count = rows of the whole graph; sums[2,d] is fp64, row 0 the
// sums of X's columns, row 1 of their squares.
//   layer_norm                 X[n,d] gamma[1,d] beta[1,d] -> Y[n,d]
//   layer_norm_gradient        G[n,d] X[n,d] gamma[1,d] -> dX[n,d]
//   layer_norm_gamma_gradient  G[n,d] X[n,d] -> R[1,d]; beta's is column_sum              reduces
//
//   batch_norm_sums            X[n,d] -> sums[2,d]                                        reduces
//
//   batch_norm                 X[n,d] sums[2,d] gamma[1,d] beta[1,d] -> Y[n,d]
//
//   batch_norm_gamma_gradient  G[n,d] X[n,d] sums[2,d] -> R[1,d]; beta's is column_sum    reduces
//
//   batch_norm_gradient        G[n,d] X[n,d] sums[2,d] gamma[1,d] dgamma[1,d] dbeta[1,d] -> dX[n,d]
//
//   batch_norm_inference       X[n,d] mean[1,d] variance[1,d] gamma[1,d] beta[1,d] -> Y[n,d]
//
// Loss (labels int32, -1 unlabelled; splits uint8: 0 none, 1 train, 2 valid, 3 test)
//   softmax_cross_entropy           logits[n,c] labels[n,1] splits[n,1] -> R[3,3] fp64 reduces
//                   row split - 1; columns: sum of the loss, correct predictions (ties go to the
//                   lowest class), labelled vertices. Rows of no split or no label are left out.
//   softmax_cross_entropy_gradient  logits[n,c] labels[n,1] splits[n,1] -> dX[n,c]
//                   count = training vertices. (softmax - onehot) / count where a labelled vertex
//                   is in the train split, 0 elsewhere.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "kernels/operator.h"

namespace ooc {

enum class OperandType { kReal, kF64, kI32, kI64, kU8 };

// Shape and type of one operand. Extents are letters (bound on first use) or the digits '1'..'9'.
struct OperandSpec {
  std::string_view name;
  char rows = 0;
  char cols = 0;
  OperandType type = OperandType::kReal;
  bool transposable = false;  // Attributes::transpose swaps rows and cols
};

struct RowKernelSpec {
  std::string_view name;
  std::array<OperandSpec, 6> inputs;  // unused ones have no name
  OperandSpec output;
  bool reduces = false;
};

// The operators above, in that order.
std::span<const RowKernelSpec> row_kernel_specs();

// The specification of a built-in operator; an unknown name is a programmer's mistake.
const RowKernelSpec& row_kernel_spec(std::string_view name);

// OOC_CHECKs that the call's operands have the shapes, types and slices the specification asks for;
// `real` is the program's scalar type. Returns the rows of the group.
std::int64_t check_call(const RowKernelSpec& spec, DType real, const OperatorCall& call);

}  // namespace ooc
