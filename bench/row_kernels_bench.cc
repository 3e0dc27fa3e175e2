// Row kernels on one row group in L2, in nanoseconds an element and as a share of `add`'s speed on
// the same shape (the loads and stores of an element-wise operator and next to no maths).
#include <cmath>

#include "bench/bench_support.h"
#include "kernels/row_kernels.h"

namespace ooc::bench {
namespace {

constexpr std::int64_t kRows = 2048;

void run(benchmark::State& state, const char* name) {
  const std::int64_t cols = state.range(0);
  const RowKernelSpec& spec = row_kernel_spec(name);
  const auto extent = [&](char letter) {
    return letter == 'n' ? kRows : letter >= '1' && letter <= '9' ? letter - '0' : cols;
  };
  std::vector<std::unique_ptr<Matrix>> owned;
  std::vector<std::int64_t> ids(kRows);
  for (std::int64_t i = 0; i < kRows; ++i) ids[static_cast<std::size_t>(i)] = i * 31;
  std::vector<std::int32_t> labels(kRows, 1);
  std::vector<std::uint8_t> splits(kRows, 1);
  std::vector<double> sums(static_cast<std::size_t>(9 + 2 * cols), 100.0);
  void* const side[] = {sums.data(), labels.data(), ids.data(), splits.data()};
  const auto view_of = [&](const OperandSpec& operand) {
    const std::int64_t rows = extent(operand.rows);
    const std::int64_t width = extent(operand.cols);
    if (operand.type == OperandType::kReal) {
      owned.push_back(
          std::make_unique<Matrix>(rows, width, operand.rows == 'n' ? kSliceWidth : width));
      return owned.back()->view();
    }
    constexpr DType kTypes[] = {DType::kF64, DType::kI32, DType::kI64, DType::kU8};
    const auto index = static_cast<std::size_t>(operand.type) - 1;
    return MatrixView{.dtype = kTypes[index],
                      .rows = rows,
                      .cols = width,
                      .slice_width = operand.rows == 'n' ? kSliceWidth : width,
                      .last_stride = width,
                      .slices = &side[index]};
  };
  std::vector<MatrixView> inputs;
  for (const OperandSpec& operand : spec.inputs) {
    if (!operand.name.empty()) inputs.push_back(view_of(operand));
  }
  const MatrixView output = view_of(spec.output);
  const Attributes attributes = {.value = 0.5, .count = 1e6};
  const RunState run_state;
  const RowKernel kernel = backend().row_kernel(name, DType::kF32);

  const Matrix a(kRows, cols);
  const Matrix b(kRows, cols);
  const Matrix y(kRows, cols);
  const MatrixView add_inputs[] = {a.view(), b.view()};
  const RowKernel add = backend().row_kernel("add", DType::kF32);
  const Pair best = time_in_turn(
      state,
      [&] {
        add({add_inputs, {&y.view(), 1}, attributes, run_state});
      },
      [&] {
        kernel({inputs, {&output, 1}, attributes, run_state});
      });
  const auto elements = static_cast<double>(kRows * cols);
  state.counters["ns_per_element"] = best.subject / elements * 1e9;
  state.counters["of_add"] = best.reference / best.subject;
}

const int kRegistered = [] {
  for (const RowKernelSpec& spec : row_kernel_specs()) {
    if (spec.name.starts_with("matmul")) continue;
    benchmark::RegisterBenchmark(spec.name.data(), run, spec.name.data())
        ->Arg(32)
        ->Arg(40)
        ->Arg(128)
        ->UseManualTime();
  }
  return 0;
}();

}  // namespace
}  // namespace ooc::bench
