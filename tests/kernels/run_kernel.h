// Runs an operator of the CPU backend on dense operands and compares it with a reference.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <variant>

#include "kernels/device/cpu_backend.h"
#include "kernels/spec/row_kernels.h"
#include "tests/kernels/sliced_matrix.h"

namespace ooc::testing {

// The widths every kernel is tested on: no padding, padding, full slices, more than one of each.
inline constexpr std::int64_t kWidths[] = {1, 3, 7, 8, 9, 32, 33, 40, 70};
inline constexpr std::int64_t kRows = 37;
inline constexpr std::int64_t kRowOffset = 5;

struct RunOptions {
  Attributes attributes = {};
  StepSeed run = {};
  std::int64_t row_offset = kRowOffset;
};

inline const Backend& cpu_backend() {
  static const auto backend = make_cpu_backend();
  return *backend;
}

using AnyMatrix =
    std::variant<SlicedMatrix<float>, SlicedMatrix<double>, SlicedMatrix<std::int32_t>,
                 SlicedMatrix<std::int64_t>, SlicedMatrix<std::uint8_t>>;

template <class T>
AnyMatrix make_operand(const OperandSpec& spec, const Dense& dense, std::int64_t row_offset) {
  const auto build = [&]<class U>() -> AnyMatrix {
    return spec.rows == 'n' ? SlicedMatrix<U>::vertex(dense, row_offset)
                            : SlicedMatrix<U>::parameter(dense);
  };
  switch (spec.type) {
    case OperandType::kReal:
    case OperandType::kAny:
      return build.template operator()<T>();
    case OperandType::kF32:
      return build.template operator()<float>();
    case OperandType::kF64:
      return build.template operator()<double>();
    case OperandType::kI32:
      return build.template operator()<std::int32_t>();
    case OperandType::kI64:
      return build.template operator()<std::int64_t>();
    case OperandType::kU8:
      break;
  }
  return build.template operator()<std::uint8_t>();
}

// The operands of a call and the memory they lie in; the output comes last.
struct OperandMemory {
  MatrixView view;
  std::span<std::byte> bytes;
};
// Runs the operator's kernel: the CPU's (tests/support/run_on_device.cc), or, in tests of CUDA, a
// GPU's (tests/cuda/row_kernels.cc).
void run_on_device(std::string_view op, DType real, std::span<const OperandMemory> operands,
                   const Attributes& attributes, const StepSeed& run);

// `output`: what the output holds before the call (a reduction adds to it).
template <class T>
Dense run_kernel(std::string_view op, const std::vector<Dense>& inputs, const Dense& output,
                 const RunOptions& options = {}) {
  const RowKernelSpec& spec = row_kernel_spec(op);
  std::vector<AnyMatrix> matrices;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    matrices.push_back(make_operand<T>(spec.inputs[i], inputs[i], options.row_offset));
  }
  const AnyMatrix result = make_operand<T>(spec.output, output, options.row_offset);
  std::vector<OperandMemory> operands;
  std::vector<MatrixView> input_views;
  const auto add = [&](const AnyMatrix& any) {
    std::visit(
        [&](const auto& matrix) {
          operands.push_back({matrix.view(), matrix.memory()});
        },
        any);
    return operands.back().view;
  };
  for (const AnyMatrix& matrix : matrices) input_views.push_back(add(matrix));
  const MatrixView output_view = add(result);
  check_call(spec, DTypeOf<T>::value,
             {input_views, {&output_view, 1}, options.attributes, options.run});
  run_on_device(op, DTypeOf<T>::value, operands, options.attributes, options.run);
  CHECK(std::visit([](const auto& matrix) { return matrix.guards_hold(); }, result));
  return std::visit([](const auto& matrix) { return matrix.dense(); }, result);
}

// Relative to the largest expected finite magnitude, at least 1. Where only one of the two is a NaN
// or infinite, infinity.
inline double largest_difference(const Dense& actual, const Dense& expected) {
  REQUIRE(actual.rows == expected.rows);
  REQUIRE(actual.cols == expected.cols);
  double difference = 0;
  double scale = 1;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double a = actual.values[i], e = expected.values[i];
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    if (!std::isfinite(a) || !std::isfinite(e)) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(a - e));
  }
  for (const double e : expected.values) {
    if (std::isfinite(e)) scale = std::max(scale, std::abs(e));
  }
  return difference / scale;
}

// fp32 kernels against double references; `terms`: the longest sum in the operator.
template <class T>
double tolerance(std::int64_t terms = 1) {
  return static_cast<double>(std::numeric_limits<T>::epsilon()) * (8 + static_cast<double>(terms));
}

#define CHECK_CLOSE(actual, expected, limit)                              \
  do {                                                                    \
    const double close_difference = largest_difference(actual, expected); \
    CHECK(close_difference <= (limit));                                   \
  } while (false)

}  // namespace ooc::testing
