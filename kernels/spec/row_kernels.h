// The built-in row operators: what every backend provides, and what each is called with.
//
// An operand is written NAME[rows,cols]. Rows `n` make a vertex operand: the row group's rows, in
// slices of kSliceWidth columns. Anything else is a parameter or a reduction: one contiguous slice.
// The same letter is the same extent; what else must hold of them stands beside the operator, and
// is checked too. The rows of a group may be vertices or a batch of edges. Unless said otherwise an
// operand has the program's scalar type T (fp32 or fp64). Operators marked `reduces` add to their
// output over the rows, in order; the others overwrite theirs. Sums over many rows stay in T;
// losses, metrics and the statistics of norms are computed in double. The maths of one element is
// in kernels/spec/element_math.h.
//
// Dense
//   matmul          X[n,k] W[k,m] -> Y[n,m]          Y = X W; transpose: W is [m,k], Y = X W^T
//   matmul_reduce   X[n,k] G[n,m] -> R[k,m]          R += X^T G                          reduces
//   bias            X[n,d] b[1,d] -> Y[n,d]          Y = X + b
//   column_sum      X[n,d] -> R[1,d]                 R += sum of rows                    reduces
// Element-wise
//   add             A[n,d] B[n,d] -> Y[n,d]
//   sub             A[n,d] B[n,d] -> Y[n,d]          Y = A - B
//   mul             A[n,d] B[n,d] -> Y[n,d]
//   affine          X[n,d] -> Y[n,d]                 value, shift. Y = value X + shift
//   maximum         A[n,d] B[n,d] -> Y[n,d]          NaN stays NaN
//   maximum_gradient  G[n,d] A[n,d] B[n,d] -> dA[n,d]  G where A >= B, else 0; dB = G - dA
//   relu            X[n,d] -> Y[n,d]                 NaN stays NaN
//   relu_gradient   G[n,d] Y[n,d] -> dX[n,d]         Y: relu's output
//   positive_bits   X[n,d] -> B[n,b] int32           b = d / 32, rounded up; bit c % 32 of word
//                   c / 32 says whether X is above 0 in column c
//   keep_bits       G[n,d] B[n,b] int32 -> Y[n,d]    G where the bit is set, else 0
//   dropout         X[n,d] ids[n,1] int64 -> Y[n,d]  value = p, key. Y = X mask / (1 - p), with p
//   in
//                   steps of 1 / 65536; the mask is a function of (run.seed, run.epoch, key,
//                   original id, column) alone. The gradient is the same operator applied to the
//                   gradient.
//   scale_rows      X[n,d] f[n,1] -> Y[n,d]          Y_i = f_i X_i
//   copy            X[n,d] -> Y[n,d]; copy_ids: of int64
//   first_rows      X[n,d] of any type -> Y[n,d], alike: the rows of a batch's first levels. X is
//                   called with the rows that Y has
//   extend_rows     X[n,d] of any type -> Y[n,d], alike: X, and zeros in the rows of further
//                   levels. X is called with the rows that Y has, zero beyond its own
//   edge_key        s[n,1] t[n,1] i[n,1] int64 -> K[n,3] int64: side by side
//   scale_cols      X[n,d] a[1,d] -> Y[n,d]          a column's own factor
//   mul_column_sum  A[n,d] B[n,d] -> R[1,d]          R += sum of rows of A B              reduces
//   scale_by        X[n,d] s[1,1] -> Y[n,d]          Y = s X
//   dot_sum         A[n,d] B[n,d] -> R[1,1]          R += sum of all of A B               reduces
// Activations (element-wise, NaN stays NaN). Their bounds in fp32 are in
// kernels/spec/element_math.h. A gradient reads the function's output Y, gelu's its input X; that
// of exp is mul.
//   sigmoid, tanh, elu, gelu, exp               X[n,d] -> Y[n,d]   elu with alpha 1, gelu with erf
//   leaky_relu                                  X[n,d] -> Y[n,d]   value = the slope below 0, >= 0
//   sigmoid_gradient, tanh_gradient, elu_gradient, leaky_relu_gradient  G[n,d] Y[n,d] -> dX[n,d]
//   gelu_gradient                               G[n,d] X[n,d] -> dX[n,d]
// Heads: groups of columns of equal width, so h divides d. h = heads where the operator names it.
//   scale_heads        X[n,d] f[n,h] -> Y[n,d]       Y[i,c] = f[i, c / (d/h)] X[i,c]
//   head_dot           A[n,d] B[n,d] -> Y[n,h]       heads. Sums of A B within each head
//   head_sum           X[n,d] -> Y[n,h]              heads. Sums of X within each head
//   head_broadcast     F[n,h] -> Y[n,d]              d = cols. Y[i,c] = F[i, c / (d/h)]
//   heads_mean         X[n,d] -> Y[n,k]              heads, d = heads k. Y_c = mean of X_(j k + c)
//   heads_spread       G[n,k] -> dX[n,d]             heads, d = heads k. Its adjoint
//   softmax_normalize  A[n,d] Z[n,h] -> Y[n,d]       A / Z by head, 0 where Z = 0
// Ranges of columns
//   concat             A[n,d] B[n,e] -> Y[n,s]       s = d + e. A's columns, then B's
//   columns            X[n,d] -> Y[n,m]              begin, m = cols. X's columns from begin on
//   place_columns      G[n,m] -> dX[n,d]             begin, d = cols. Its adjoint: 0 elsewhere
//   pick_type          X[n,w] t[n,1] int32 -> Y[n,d]   d = cols divides w. Columns t d to t d + d
//   place_type         G[n,d] t[n,1] int32 -> dX[n,w]  w = cols. Its adjoint: 0 elsewhere
// Of what a dataset keeps of its vertices, and of sums over their edges
//   degree_factor   D[n,3] int32 -> f[n,1]           value = a DegreeFactor. Computed in double
//   inverse         S[n,1] fp64 -> f[n,1]            1 / S, 0 where S is 0
//   inverse_sqrt    S[n,1] fp64 -> f[n,1]            S^-1/2, 0 where S isn't above 0
//   count_zeros     X[n,d] -> R[1,1] fp64            R += elements that are 0              reduces
//   binary_label    labels[n,1] int32 -> Y[n,1] uint8   0 or 1; 255 where there is none, below 0
// GRU cell, as torch.nn.GRUCell: three gates side by side, t = 3 d. Gx = x Wx + bx, Gh = H Wh + bh;
// r = sigmoid(Gx_r + Gh_r), z = sigmoid(Gx_z + Gh_z), n = tanh(Gx_n + r Gh_n).
//   gru                  Gx[n,t] Gh[n,t] H[n,d] -> Y[n,d]          (1 - z) n + z H
//   gru_input_gradient   G[n,d] Gx[n,t] Gh[n,t] H[n,d] -> dGx[n,t]
//   gru_hidden_gradient  G[n,d] Gx[n,t] Gh[n,t] H[n,d] -> dGh[n,t]
//   gru_state_gradient   G[n,d] Gx[n,t] Gh[n,t] -> dH[n,d]         z G
// Of edges. K: what kernels/spec/edge_coordinates.h calls an edge's key, E: its winner_key.
//   softmax_weight  S[n,h] M[n,h] Z[n,h] -> Y[n,h]        exp(S - M) / Z
//   edge_dropout    X[n,d] K[n,3] int64 -> Y[n,d]         value = p, key, heads. Whole heads are
//                   dropped; the mask is a function of (run.seed, run.epoch, key, K, head) alone.
//                   The gradient is the same operator applied to the gradient.
//   winner_key      s[n,1] i[n,1] int64 -> E[n,1] int64   of the source and the index of K
//   select_winner   G[n,d] W[n,d] int64 E[n,1] int64 -> Y[n,d]   G where W is E
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
//   softmax_cross_entropy_weighted           logits[n,c] labels[n,1] splits[n,1] w[1,c]
//                   -> R[3,4] fp64 reduces. A vertex's loss counts w of its class; column 3 is the
//                   sum of the weights, what the loss is to be divided by.
//   softmax_cross_entropy_weighted_gradient  logits[n,c] labels[n,1] splits[n,1] w[1,c] -> dX[n,c]
//                   count = sum of the weights of the training vertices.
//   sigmoid_cross_entropy           logits[n,c] Y[n,c] splits[n,1] -> R[3,3] fp64 reduces
//                   Y uint8, 0 or 1, 255 where an entry has no label and is left out. Columns: sum
//                   of the loss, right entries (a logit above 0 says 1), labelled entries.
//   sigmoid_cross_entropy_gradient  logits[n,c] Y[n,c] splits[n,1] -> dX[n,c]
//                   count = labelled entries of training vertices. (sigmoid - Y) / count there.
//   sigmoid_cross_entropy_weighted           logits[n,c] Y[n,c] splits[n,1] w[1,c] -> R[3,3] fp64
//                   reduces. The loss of an entry that is 1 counts w of its column.
//   sigmoid_cross_entropy_weighted_gradient  logits[n,c] Y[n,c] splits[n,1] w[1,c] -> dX[n,c]
//                   count as without weights.
//   value_loss            X[n,c] Y[n,c] splits[n,1] -> R[3,2] fp64 reduces. value = a ValueLoss
//                   Y fp32, NaN where an entry has no label and is left out. Columns: sum of the
//                   loss, labelled entries.
//   value_loss_gradient   X[n,c] Y[n,c] splits[n,1] -> dX[n,c]
//                   value, count = labelled entries of training vertices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/spec/element_math.h"
#include "kernels/spec/operator.h"

namespace ooc {

// The train split in a row of splits.
inline constexpr std::uint8_t kTrainSplit = 1;

// Columns that a word of positive_bits is about.
inline constexpr std::int64_t kBitsPerWord = 32;

// What degree_factor makes of a row of degrees (storage/dataset/dataset.h).
enum class DegreeFactor {
  kIn,                  // (in-edges)^-1/2, each vertex without a self loop having one
  kOut,                 // (out-edges)^-1/2, likewise
  kInverseIn,           // 1 / (in-edges, self loops in the data among them); 0 where there are none
  kInverseInWithLoops,  // the same, each vertex without a self loop having one
  kLoop,                // 1 - (self loops in the data)
};

// kAny: the same of all operands that say so.
enum class OperandType { kReal, kF32, kF64, kI32, kI64, kU8, kAny };

// What Attributes::count counts, where an operator reads it. Of a whole graph a program has the
// number; of a batch it is that of the rows or labels at hand.
enum class CountOf {
  kNone,          // the operator doesn't read it
  kRows,          // rows of the operand
  kLabels,        // labelled entries of the operand's rows in the train split
  kLabelWeights,  // the weights of these
};

// Shape and type of one operand. Extents are small letters (bound on first use) or the digits
// '1'..'9'.
struct OperandSpec {
  std::string_view name;
  char rows = 0;
  char cols = 0;
  OperandType type = OperandType::kReal;
  bool transposable = false;  // Attributes::transpose swaps rows and cols
};

// What the letters of one call are bound to.
class Extents {
 public:
  std::int64_t operator[](char letter) const { return extents_[index(letter)]; }
  bool is_bound(char letter) const { return (bound_ >> index(letter) & 1u) != 0; }
  void bind(char letter, std::int64_t extent) {
    extents_[index(letter)] = extent;
    bound_ |= 1u << index(letter);
  }

 private:
  static std::size_t index(char letter) { return static_cast<std::size_t>(letter - 'a'); }
  std::int64_t extents_[26];  // only the bound ones are set
  std::uint32_t bound_ = 0;
};

// What holds between the extents and the attributes of a call beyond equal letters.
using ExtentRule = bool (*)(const Extents& extents, const Attributes& attributes);

struct RowKernelSpec {
  std::string_view name;
  std::array<OperandSpec, 6> inputs;  // unused ones have no name
  OperandSpec output;
  bool reduces = false;
  ExtentRule rule = nullptr;
  CountOf count = CountOf::kNone;
};

// The operators above, in that order.
std::span<const RowKernelSpec> row_kernel_specs();

// The specification of a built-in operator; an unknown name is a programmer's mistake.
const RowKernelSpec& row_kernel_spec(std::string_view name);

// kNone of an operator that isn't built in.
CountOf count_of(std::string_view name);

// What a built-in operator takes for an element of its first operand or its output, whichever is
// wider, in elements of dropout (bench/row_kernels_bench.cc); 0 where the bytes that it reads and
// writes say more, and of operators that aren't built in.
double work_of_element(std::string_view name);

// OOC_CHECKs that the call's operands have the shapes, types and slices the specification asks for;
// `real` is the program's scalar type. Returns the rows of the group.
std::int64_t check_call(const RowKernelSpec& spec, DType real, const OperatorCall& call);

}  // namespace ooc
