// Products as training calls them: row group after row group of matrices in slices, which come from
// memory. Giga multiply-adds a second of all threads together, by their CPU time, medians:
//   matmul, transposed, reduce       the operators: X W, X W^T, X^T G
//   contiguous                       sgemm of as many rows that lie side by side, in cache
//   reduce_of_matmul                 the ratio of the two operators
// The four take turns, so that what else the machine does hits all.
#include <time.h>

#include <array>
#include <barrier>
#include <thread>

#include "bench/bench_support.h"
#include "kernels/dense/blas.h"
#include "kernels/dense/blas_core.h"

namespace ooc::bench {
namespace {

constexpr int kRounds = 9;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// As a plan chooses them for a program whose widest value has so many columns.
std::int64_t group_rows(std::int64_t cols) {
  std::int64_t rows = 2048;
  while (rows > 128 && rows * round_up(cols, kSliceWidth) * 32 > 32 << 20) rows /= 2;
  return rows;
}

MatrixView rows_from(MatrixView view, std::int64_t first, std::int64_t rows) {
  view.row_offset += first;
  view.rows = std::min(rows, view.rows - first);
  return view;
}

void run_operator(const char* name, const MatrixView& a, const MatrixView& b, const MatrixView& c,
                  bool transpose = false) {
  const RowKernel kernel = cpu_row_kernel(name, DType::kF32);
  const MatrixView inputs[] = {a, b};
  const Attributes attributes{.transpose = transpose};
  const StepSeed run;
  kernel({inputs, {&c, 1}, attributes, run});
}

// The operands of one thread.
class Products {
 public:
  enum Form { kMatmul, kTransposed, kReduce, kContiguous, kForms };

  Products(std::int64_t rows, std::int64_t k, std::int64_t m)
      : x_(rows, k),
        y_(rows, m),
        w_(k, m, m),
        turned_(m, k, k),
        sums_(k, m, m),
        x_flat_(group_rows(k), k, k),
        y_flat_(group_rows(k), m, m) {}

  // Of all rows; CPU seconds.
  double run(int form) {
    const double begin = cpu_seconds();
    const std::int64_t step = group_rows(x_.view().cols);
    for (std::int64_t first = 0; first < x_.view().rows; first += step) {
      const MatrixView x = rows_from(x_.view(), first, step);
      const MatrixView y = rows_from(y_.view(), first, step);
      if (form == kMatmul) run_operator("matmul", x, w_.view(), y);
      if (form == kTransposed) run_operator("matmul", x, turned_.view(), y, true);
      if (form == kReduce) run_operator("matmul_reduce", x, y, sums_.view());
      if (form == kContiguous) multiply_contiguous(x.rows);
    }
    return cpu_seconds() - begin;
  }

 private:
  void multiply_contiguous(std::int64_t rows) {
    gemm(Gemm<float>{.m = rows,
                     .n = w_.view().cols,
                     .k = w_.view().rows,
                     .a = x_flat_.data(),
                     .lda = w_.view().rows,
                     .b = w_.data(),
                     .ldb = w_.view().cols,
                     .c = y_flat_.data(),
                     .ldc = w_.view().cols});
  }

  Matrix x_, y_, w_, turned_, sums_, x_flat_, y_flat_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
  return values[kRounds / 2];
}

void products(benchmark::State& state) {
  const std::int64_t k = state.range(0), m = state.range(1), rows = state.range(2);
  const auto thread_count = static_cast<std::size_t>(state.range(3));
  std::vector<std::array<double, Products::kForms>> seconds(thread_count);
  for (auto _ : state) {
    std::barrier together(state.range(3));
    std::vector<std::thread> threads;
    for (auto& mine : seconds) {
      threads.emplace_back([&] {
        Products products(rows, k, m);
        std::array<std::vector<double>, Products::kForms> taken;
        for (int round = 0; round < kRounds; ++round) {
          for (std::size_t form = 0; form < taken.size(); ++form) {
            together.arrive_and_wait();
            taken[form].push_back(products.run(static_cast<int>(form)));
          }
        }
        for (std::size_t form = 0; form < taken.size(); ++form) mine[form] = median(taken[form]);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const auto rate = [&](Products::Form form) {
    double sum = 0;
    for (const auto& mine : seconds) sum += static_cast<double>(rows * k * m) / mine[form] * 1e-9;
    return sum;
  };
  state.counters["matmul"] = rate(Products::kMatmul);
  state.counters["transposed"] = rate(Products::kTransposed);
  state.counters["reduce"] = rate(Products::kReduce);
  state.counters["contiguous"] = rate(Products::kContiguous);
  state.counters["reduce_of_matmul"] = rate(Products::kReduce) / rate(Products::kMatmul);
  state.SetLabel(blas_core().name);
}

BENCHMARK(products)
    ->ArgNames({"k", "m", "rows", "threads"})
    ->ArgsProduct({{128, 602, 1433, 4714}, {16, 64, 128, 256}, {16384}, {1, 2}})
    ->ArgsProduct({{16, 64}, {16, 64, 128, 256, 602}, {16384}, {1}})
    ->ArgsProduct({{128, 602}, {602}, {16384}, {1}})
    ->ArgsProduct({{64, 128}, {16, 64, 128}, {131072}, {1}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ooc::bench
