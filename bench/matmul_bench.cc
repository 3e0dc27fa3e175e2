// The forms a product of matrices in slices can take, each as a share of one sgemm on contiguous
// matrices of the same shape (1 = as fast). One row group of 2,048 rows, in cache; the forms but
// `shipped` take it 512 rows at a time.
//   shipped     what the operator does
//   slices      one sgemm per pair of slices, straight into the output
//   scratch     slices of X accumulate into a contiguous product, scattered at the end
//   gathered    X made contiguous first, one sgemm per output slice
//   both        X made contiguous, one sgemm, scattered
#include <cstring>

#include "bench/bench_support.h"
#include "kernels/blas.h"

namespace ooc::bench {
namespace {

constexpr std::int64_t kRows = 2048;
constexpr std::int64_t kBlock = 512;

enum class Form { kShipped, kSlices, kScratch, kGathered, kBoth };

std::int64_t block_of(Form form) { return form == Form::kShipped ? kRows : kBlock; }

MatrixView rows_from(MatrixView view, std::int64_t first, Form form) {
  view.row_offset += first;
  view.rows = block_of(form);
  return view;
}

void gather_rows(const MatrixView& x, float* to) {
  for (std::int64_t s = 0; s < x.slice_count(); ++s) {
    const auto bytes = static_cast<std::size_t>(x.slice_cols(s)) * sizeof(float);
    for (std::int64_t i = 0; i < x.rows; ++i) {
      std::memcpy(to + i * x.cols + s * kSliceWidth, x.data<float>(s) + i * x.stride(s), bytes);
    }
  }
}

void scatter_rows(const float* from, const MatrixView& y) {
  for (std::int64_t s = 0; s < y.slice_count(); ++s) {
    const auto bytes = static_cast<std::size_t>(y.slice_cols(s)) * sizeof(float);
    for (std::int64_t i = 0; i < y.rows; ++i) {
      std::memcpy(y.data<float>(s) + i * y.stride(s), from + i * y.cols + s * kSliceWidth, bytes);
    }
  }
}

void run_operator(const char* name, const MatrixView& a, const MatrixView& b, const MatrixView& c) {
  const RowKernel kernel = backend().row_kernel(name, DType::kF32);
  const MatrixView inputs[] = {a, b};
  const Attributes attributes;
  const RunState run;
  kernel({inputs, {&c, 1}, attributes, run});
}

// Y = X W
void matmul_form(Form form, MatrixView x, const Matrix& wm, MatrixView y, float* x_flat,
                 float* y_flat) {
  const std::int64_t k = x.cols;
  const std::int64_t m = y.cols;
  if (form == Form::kShipped) return run_operator("matmul", x, wm.view(), y);
  if (form == Form::kSlices) {
    for (std::int64_t j = 0; j < y.slice_count(); ++j) {
      for (std::int64_t i = 0; i < x.slice_count(); ++i) {
        gemm(Gemm<float>{.m = x.rows,
                         .n = y.slice_cols(j),
                         .k = x.slice_cols(i),
                         .a = x.data<float>(i),
                         .lda = x.stride(i),
                         .b = wm.data() + i * kSliceWidth * m + j * kSliceWidth,
                         .ldb = m,
                         .c = y.data<float>(j),
                         .ldc = y.stride(j),
                         .accumulate = i > 0});
      }
    }
    return;
  }
  if (form == Form::kScratch) {
    for (std::int64_t i = 0; i < x.slice_count(); ++i) {
      gemm(Gemm<float>{.m = x.rows,
                       .n = m,
                       .k = x.slice_cols(i),
                       .a = x.data<float>(i),
                       .lda = x.stride(i),
                       .b = wm.data() + i * kSliceWidth * m,
                       .ldb = m,
                       .c = y_flat,
                       .ldc = m,
                       .accumulate = i > 0});
    }
    return scatter_rows(y_flat, y);
  }
  gather_rows(x, x_flat);
  const bool both = form == Form::kBoth;
  const std::int64_t step = both ? m : kSliceWidth;
  for (std::int64_t first = 0, j = 0; first < m; first += step, ++j) {
    gemm(Gemm<float>{.m = x.rows,
                     .n = std::min(step, m - first),
                     .k = k,
                     .a = x_flat,
                     .lda = k,
                     .b = wm.data() + first,
                     .ldb = m,
                     .c = both ? y_flat : y.data<float>(j),
                     .ldc = both ? m : y.stride(j)});
  }
  if (both) scatter_rows(y_flat, y);
}

// R += X^T G
void reduce_form(Form form, MatrixView x, MatrixView g, const Matrix& rm, float* x_flat,
                 float* g_flat) {
  const std::int64_t m = g.cols;
  if (form == Form::kShipped) return run_operator("matmul_reduce", x, g, rm.view());
  Gemm<float> call = {.transpose_a = Transpose::kYes, .k = x.rows, .ldc = m, .accumulate = true};
  if (form == Form::kSlices) {
    for (std::int64_t i = 0; i < x.slice_count(); ++i) {
      for (std::int64_t j = 0; j < g.slice_count(); ++j) {
        call.m = x.slice_cols(i);
        call.n = g.slice_cols(j);
        call.a = x.data<float>(i);
        call.lda = x.stride(i);
        call.b = g.data<float>(j);
        call.ldb = g.stride(j);
        call.c = rm.data() + i * kSliceWidth * m + j * kSliceWidth;
        gemm(call);
      }
    }
    return;
  }
  gather_rows(g, g_flat);
  call.n = m;
  call.b = g_flat;
  call.ldb = m;
  if (form == Form::kBoth) {
    gather_rows(x, x_flat);
    call.m = x.cols;
    call.a = x_flat;
    call.lda = x.cols;
    call.c = rm.data();
    return gemm(call);
  }
  for (std::int64_t i = 0; i < x.slice_count(); ++i) {
    call.m = x.slice_cols(i);
    call.a = x.data<float>(i);
    call.lda = x.stride(i);
    call.c = rm.data() + i * kSliceWidth * m;
    gemm(call);
  }
}

void report(benchmark::State& state, const Pair& best, double flops) {
  state.counters["of_contiguous"] = best.reference / best.subject;
  state.counters["GFLOPs"] = flops / best.subject * 1e-9;
  state.counters["contiguous_GFLOPs"] = flops / best.reference * 1e-9;
  state.SetLabel(std::string(blas_core()));
}

void matmul(benchmark::State& state, Form form) {
  const std::int64_t k = state.range(0);
  const std::int64_t m = state.range(1);
  const Matrix x(kRows, k);
  const Matrix w(k, m, m);
  const Matrix y(kRows, m);
  const Matrix x_flat(kRows, k, k);
  const Matrix y_flat(kRows, m, m);
  const Gemm<float> contiguous = {.m = kRows,
                                  .n = m,
                                  .k = k,
                                  .a = x_flat.data(),
                                  .lda = k,
                                  .b = w.data(),
                                  .ldb = m,
                                  .c = y_flat.data(),
                                  .ldc = m};
  const Pair best = time_in_turn(
      state, [&] { gemm(contiguous); },
      [&] {
        for (std::int64_t first = 0; first < kRows; first += block_of(form)) {
          matmul_form(form, rows_from(x.view(), first, form), w, rows_from(y.view(), first, form),
                      x_flat.data(), y_flat.data());
        }
      });
  report(state, best, 2.0 * static_cast<double>(kRows * k * m));
}

void matmul_reduce(benchmark::State& state, Form form) {
  const std::int64_t k = state.range(0);
  const std::int64_t m = state.range(1);
  const Matrix x(kRows, k);
  const Matrix g(kRows, m);
  const Matrix r(k, m, m);
  const Matrix x_flat(kRows, k, k);
  const Matrix g_flat(kRows, m, m);
  const Gemm<float> contiguous = {.transpose_a = Transpose::kYes,
                                  .m = k,
                                  .n = m,
                                  .k = kRows,
                                  .a = x_flat.data(),
                                  .lda = k,
                                  .b = g_flat.data(),
                                  .ldb = m,
                                  .c = r.data(),
                                  .ldc = m,
                                  .accumulate = true};
  const Pair best = time_in_turn(
      state, [&] { gemm(contiguous); },
      [&] {
        for (std::int64_t first = 0; first < kRows; first += block_of(form)) {
          reduce_form(form, rows_from(x.view(), first, form), rows_from(g.view(), first, form), r,
                      x_flat.data(), g_flat.data());
        }
      });
  report(state, best, 2.0 * static_cast<double>(kRows * k * m));
}

void widths(benchmark::internal::Benchmark* bench) {
  for (const int width : {16, 32, 64, 128, 256, 512}) bench->Args({width, width});
  bench->Args({128, 40})->Args({600, 128})->Args({256, 47});
  bench->UseManualTime()->Unit(benchmark::kMicrosecond);
}

BENCHMARK_CAPTURE(matmul, shipped, Form::kShipped)->Apply(widths);
BENCHMARK_CAPTURE(matmul, slices, Form::kSlices)->Apply(widths);
BENCHMARK_CAPTURE(matmul, scratch, Form::kScratch)->Apply(widths);
BENCHMARK_CAPTURE(matmul, gathered, Form::kGathered)->Apply(widths);
BENCHMARK_CAPTURE(matmul, both, Form::kBoth)->Apply(widths);
BENCHMARK_CAPTURE(matmul_reduce, shipped, Form::kShipped)->Apply(widths);
BENCHMARK_CAPTURE(matmul_reduce, slices, Form::kSlices)->Apply(widths);
BENCHMARK_CAPTURE(matmul_reduce, scratch, Form::kScratch)->Apply(widths);
BENCHMARK_CAPTURE(matmul_reduce, both, Form::kBoth)->Apply(widths);

}  // namespace
}  // namespace ooc::bench
