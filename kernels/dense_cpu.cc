#include <vector>

#include "kernels/blas.h"
#include "kernels/cpu_row_kernels.h"
#include "kernels/cpu_traversal.h"

namespace ooc::cpu {

namespace {

// Rows a gemm takes at a time. A product of 512 x 32 by 32 x 32 is small enough for OpenBLAS's
// kernels without packing, where it has them, and its operands stay in L2 while slices are added.
// Shapes of calls follow from the operands' alone, so that the same operands give the same bits.
constexpr std::int64_t kGemmRows = 512;

// From this many pairs of slices, one gemm on contiguous copies beats one gemm a pair.
constexpr std::int64_t kCopyPairs = 64;

MatrixView rows_of(MatrixView view, std::int64_t first) {
  view.row_offset += first;
  view.rows = std::min(kGemmRows, view.rows - first);
  return view;
}

template <class T>
void copy_contiguous(const MatrixView& x, T* to) {
  for_each_strip(x, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        std::copy_n(xs.row(i), static_cast<std::int64_t>(cols),
                    to + i * x.cols + strip.first_column);
      }
    });
  });
}

// One gemm for every pair of an input and an output slice.
template <class T>
void multiply_slices(const MatrixView& x, const MatrixView& w, bool transpose,
                     const MatrixView& y) {
  const std::int64_t ldw = w.stride(0);
  for (std::int64_t j = 0; j < y.slice_count(); ++j) {
    for (std::int64_t i = 0; i < x.slice_count(); ++i) {
      const std::int64_t k = i * x.slice_width;
      const std::int64_t m = j * y.slice_width;
      gemm(Gemm<T>{.transpose_b = transpose ? Transpose::kYes : Transpose::kNo,
                   .m = x.rows,
                   .n = y.slice_cols(j),
                   .k = x.slice_cols(i),
                   .a = x.data<T>(i),
                   .lda = x.stride(i),
                   .b = w.data<T>(0) + (transpose ? m * ldw + k : k * ldw + m),
                   .ldb = ldw,
                   .c = y.data<T>(j),
                   .ldc = y.stride(j),
                   .accumulate = i > 0});
    }
  }
}

template <class T>
void reduce_slices(const MatrixView& x, const MatrixView& g, const MatrixView& r) {
  for (std::int64_t i = 0; i < x.slice_count(); ++i) {
    for (std::int64_t j = 0; j < g.slice_count(); ++j) {
      gemm(Gemm<T>{.transpose_a = Transpose::kYes,
                   .m = x.slice_cols(i),
                   .n = g.slice_cols(j),
                   .k = x.rows,
                   .a = x.data<T>(i),
                   .lda = x.stride(i),
                   .b = g.data<T>(j),
                   .ldb = g.stride(j),
                   .c = r.data<T>(0) + i * x.slice_width * r.stride(0) + j * g.slice_width,
                   .ldc = r.stride(0),
                   .accumulate = true});
    }
  }
}

template <class T>
void reduce_copies(const MatrixView& x, const MatrixView& g, const MatrixView& r) {
  thread_local std::vector<T> scratch;  // kGemmRows rows of both at most
  const std::int64_t x_size = kGemmRows * x.cols;
  const auto size = static_cast<std::size_t>(x_size + kGemmRows * g.cols);
  if (scratch.size() < size) scratch.resize(size);
  copy_contiguous(x, scratch.data());
  copy_contiguous(g, scratch.data() + x_size);
  gemm(Gemm<T>{.transpose_a = Transpose::kYes,
               .m = x.cols,
               .n = g.cols,
               .k = x.rows,
               .a = scratch.data(),
               .lda = x.cols,
               .b = scratch.data() + x_size,
               .ldb = g.cols,
               .c = r.data<T>(0),
               .ldc = r.stride(0),
               .accumulate = true});
}

}  // namespace

template <class T>
void matmul(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& y = call.outputs[0];
  for (std::int64_t first = 0; first < x.rows; first += kGemmRows) {
    multiply_slices<T>(rows_of(x, first), call.inputs[1], call.attributes.transpose,
                       rows_of(y, first));
  }
}

template <class T>
void matmul_reduce(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& g = call.inputs[1];
  const bool copies = x.slice_count() * g.slice_count() >= kCopyPairs;
  for (std::int64_t first = 0; first < x.rows; first += kGemmRows) {
    const auto reduce = copies ? reduce_copies<T> : reduce_slices<T>;
    reduce(rows_of(x, first), rows_of(g, first), call.outputs[0]);
  }
}

template <class T>
void bias(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& y = call.outputs[0];
  for_each_strip(y, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    const StripRows<T> ys(y, strip);
    const T* __restrict b = parameter_row<T>(call.inputs[1], strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < y.rows; ++i) {
        const T* __restrict x_row = xs.row(i);
        T* __restrict y_row = ys.row(i);
        for (std::int64_t c = 0; c < cols; ++c) y_row[c] = x_row[c] + b[c];
      }
    });
  });
}

template <class T>
void column_sum(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  for_each_strip(x, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    T* __restrict sums = parameter_row<T>(call.outputs[0], strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        const T* __restrict x_row = xs.row(i);
        for (std::int64_t c = 0; c < cols; ++c) sums[c] += x_row[c];
      }
    });
  });
}

#define OOC_INSTANTIATE(T)                             \
  template void matmul<T>(const OperatorCall&);        \
  template void matmul_reduce<T>(const OperatorCall&); \
  template void bias<T>(const OperatorCall&);          \
  template void column_sum<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
