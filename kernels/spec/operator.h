// What a row-wise or reducing kernel is called with: the operands of one operator for one group of
// rows. Called per row group (up to 2,048 rows), never per row.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>

#include "kernels/spec/matrix_view.h"

namespace ooc {

// Constants of one operator in a program. Which of them an operator reads stands beside its name in
// kernels/spec/row_kernels.h.
struct Attributes {
  double value = 0;        // a probability, an epsilon, a scale
  double count = 0;        // what a mean is taken over: rows, labels
  std::uint32_t key = 0;   // the operator's number in the random streams
  bool transpose = false;  // matmul: use the parameter transposed
  double shift = 0;        // affine's constant
  std::int64_t heads = 1;  // groups of columns, of equal width
  std::int64_t begin = 0;  // the first of a range of columns
  std::int64_t cols = 0;   // columns of an output that the operands don't tell

  bool operator==(const Attributes&) const = default;
  // All of them, to compare and to print.
  auto fields() const {
    return std::make_tuple(value, count, key, transpose, shift, heads, begin, cols);
  }
};

// What changes from one run of a program to the next.
struct StepSeed {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
};

// Inputs and outputs in the order the operator documents. A vertex operand has the group's rows; a
// parameter or reduction operand has its own shape. Real-valued operands share one scalar type,
// fp32 or fp64 (the kernel is chosen by it); labels, splits and ids keep theirs; sums that are
// documented as double are fp64. Outputs are disjoint from inputs. A vertex output is overwritten,
// its padding columns are never data: they hold anything. A reduction output is added to: it
// arrives zeroed or holding the sum of earlier rows of the same leaf.
struct OperatorCall {
  std::span<const MatrixView> inputs;
  std::span<const MatrixView> outputs;
  const Attributes& attributes;
  const StepSeed& run;
};

using RowKernel = void (*)(const OperatorCall&);

}  // namespace ooc
