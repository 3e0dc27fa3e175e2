// Row kernels on one row group in L2, in nanoseconds an element and as a share of `add`'s speed on
// the same shape (the loads and stores of an element-wise operator and next to no maths).
#include <cmath>

#include "bench/bench_support.h"
#include "kernels/spec/row_kernels.h"

namespace ooc::bench {
namespace {

constexpr std::int64_t kRows = 2048;

constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kTypes = 4;

// The extent of a letter of kernels/spec/row_kernels.h where d has `cols` columns.
std::int64_t extent_of(char letter, std::int64_t cols) {
  switch (letter) {
    case 'n':
      return kRows;
    case 'h':
      return kHeads;
    case 'k':
      return cols / kHeads;
    case 'm':
      return cols / 2;
    case 's':
      return 2 * cols;
    case 't':
      return 3 * cols;
    case 'b':
      return ceil_div(cols, kBitsPerWord);
    case 'w':
      return kTypes * cols;
    default:
      return letter >= '1' && letter <= '9' ? letter - '0' : cols;
  }
}

// Operands of other types than the program's, and sums in double: one piece of memory serves as
// every slice.
class Integers {
 public:
  Integers(OperandType type, std::int64_t rows, std::int64_t cols, bool in_slices) {
    constexpr DType kDtypes[] = {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kU8};
    view_ = {.dtype = kDtypes[static_cast<std::size_t>(type) - 1],
             .rows = rows,
             .cols = cols,
             .slice_width = in_slices ? kSliceWidth : cols};
    view_.last_stride = view_.slice_cols(view_.slice_count() - 1);
    const auto elements = static_cast<std::size_t>(rows * view_.slice_width);
    data_.resize(elements * sizeof(std::int64_t));
    for (std::size_t i = 0; i < elements; ++i) fill(type, i);
    view_.slices = one_slice(data_.data());
  }
  const MatrixView& view() const { return view_; }

 private:
  void fill(OperandType type, std::size_t i) {
    if (type == OperandType::kF32) reinterpret_cast<float*>(data_.data())[i] = 1;
    if (type == OperandType::kF64) reinterpret_cast<double*>(data_.data())[i] = 100;
    if (type == OperandType::kI32) reinterpret_cast<std::int32_t*>(data_.data())[i] = 1;
    if (type == OperandType::kI64) {
      reinterpret_cast<std::int64_t*>(data_.data())[i] = static_cast<std::int64_t>(i) * 31;
    }
    if (type == OperandType::kU8) data_[i] = std::byte{1};
  }

  MatrixView view_;
  std::vector<std::byte> data_;
};

void run(benchmark::State& state, const char* name) {
  const std::int64_t cols = state.range(0);
  const RowKernelSpec& spec = row_kernel_spec(name);
  std::vector<std::unique_ptr<Matrix>> owned;
  std::vector<std::unique_ptr<Integers>> integers;
  const auto view_of = [&](const OperandSpec& operand) {
    const std::int64_t rows = extent_of(operand.rows, cols);
    const std::int64_t width = extent_of(operand.cols, cols);
    const bool in_slices = operand.rows == 'n';
    if (operand.type == OperandType::kReal || operand.type == OperandType::kAny) {
      owned.push_back(std::make_unique<Matrix>(rows, width, in_slices ? kSliceWidth : width));
      return owned.back()->view();
    }
    integers.push_back(std::make_unique<Integers>(operand.type, rows, width, in_slices));
    return integers.back()->view();
  };
  std::vector<MatrixView> inputs;
  for (const OperandSpec& operand : spec.inputs) {
    if (!operand.name.empty()) inputs.push_back(view_of(operand));
  }
  const MatrixView output = view_of(spec.output);
  const Attributes attributes = {
      .value = 0.5, .count = 1e6, .heads = kHeads, .begin = 0, .cols = output.cols};
  const StepSeed run_state;
  const RowKernel kernel = cpu_row_kernel(name, DType::kF32);

  const Matrix a(kRows, cols);
  const Matrix b(kRows, cols);
  const Matrix y(kRows, cols);
  const MatrixView add_inputs[] = {a.view(), b.view()};
  const RowKernel add = cpu_row_kernel("add", DType::kF32);
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
