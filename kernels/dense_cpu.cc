#include "kernels/blas.h"
#include "kernels/cpu_row_kernels.h"
#include "kernels/cpu_traversal.h"

namespace ooc::cpu {

template <class T>
void matmul(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& w = call.inputs[1];
  const MatrixView& y = call.outputs[0];
  const bool transpose = call.attributes.transpose;
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
void matmul_reduce(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& g = call.inputs[1];
  const MatrixView& r = call.outputs[0];
  if (x.rows == 0) return;
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
