// Products with a row or a scalar that all rows share, and the reductions that are their gradients.
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"

namespace ooc::cpu {

template <class T>
void scale_cols(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& y = call.outputs[0];
  for_each_strip(y, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    const StripRows<T> ys(y, strip);
    const T* __restrict a = parameter_row<T>(call.inputs[1], strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < y.rows; ++i) {
        const T* __restrict x_row = xs.row(i);
        T* __restrict y_row = ys.row(i);
        for (std::int64_t c = 0; c < cols; ++c) y_row[c] = x_row[c] * a[c];
      }
    });
  });
}

template <class T>
void mul_column_sum(const OperatorCall& call) {
  const MatrixView& a = call.inputs[0];
  const MatrixView& b = call.inputs[1];
  for_each_strip(a, [&](const Strip& strip) {
    const StripRows<T> as(a, strip);
    const StripRows<T> bs(b, strip);
    T* __restrict sums = parameter_row<T>(call.outputs[0], strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < a.rows; ++i) {
        const T* __restrict a_row = as.row(i);
        const T* __restrict b_row = bs.row(i);
        for (std::int64_t c = 0; c < cols; ++c) sums[c] += a_row[c] * b_row[c];
      }
    });
  });
}

template <class T>
void scale_by(const OperatorCall& call) {
  const T s = *call.inputs[1].data<T>(0);
  map_elements<T>(call.inputs[0], call.outputs[0], [s](T x) { return s * x; });
}

template <class T>
void dot_sum(const OperatorCall& call) {
  const MatrixView& a = call.inputs[0];
  const MatrixView& b = call.inputs[1];
  double sum = 0;
  for_each_strip(a, [&](const Strip& strip) {
    const StripRows<T> as(a, strip);
    const StripRows<T> bs(b, strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < a.rows; ++i) {
        const T* a_row = as.row(i);
        const T* b_row = bs.row(i);
        sum += static_cast<double>(
            lane_sum<T>(cols, [=](std::int64_t c) { return a_row[c] * b_row[c]; }));
      }
    });
  });
  *call.outputs[0].data<T>(0) += static_cast<T>(sum);
}

#define OOC_INSTANTIATE(T)                              \
  template void scale_cols<T>(const OperatorCall&);     \
  template void mul_column_sum<T>(const OperatorCall&); \
  template void scale_by<T>(const OperatorCall&);       \
  template void dot_sum<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
