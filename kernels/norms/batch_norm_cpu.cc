// Batch norm: statistics over all rows of the graph come in as double sums, so every kernel here
// turns them into per-column scalars once per strip and then runs element-wise.
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "kernels/spec/element_math.h"
#include "storage/base/errors.h"

namespace ooc::cpu {
namespace {

template <class T>
struct ColumnStatistics {
  T mean[kStripCols];
  T invstd[kStripCols];
};

template <class T>
ColumnStatistics<T> column_statistics(const MatrixView& sums, const Strip& strip,
                                      const Attributes& attributes) {
  OOC_CHECK(attributes.count > 0);
  const double* sum = parameter_row<double>(sums, strip, 0);
  const double* squares = parameter_row<double>(sums, strip, 1);
  ColumnStatistics<T> statistics;
  for (std::int64_t c = 0; c < strip.cols; ++c) {
    const double mean = sum[c] / attributes.count;
    const double variance = squares[c] / attributes.count - mean * mean;
    statistics.mean[c] = static_cast<T>(mean);
    statistics.invstd[c] = static_cast<T>(inverse_std(variance, attributes.value));
  }
  return statistics;
}

// Y = (X - mean) * scale + shift with per-column scalars.
template <class T>
void normalize_strip(const MatrixView& x, const MatrixView& y, const Strip& strip, const T* mean,
                     const T* scale, const T* shift) {
  const StripRows<T> xs(x, strip);
  const StripRows<T> ys(y, strip);
  with_columns(strip.cols, [&](auto cols) {
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const T* x_row = xs.row(i);
      T* __restrict y_row = ys.row(i);
      for (std::int64_t c = 0; c < cols; ++c) {
        y_row[c] = normalize(x_row[c], mean[c], scale[c], shift[c]);
      }
    }
  });
}

}  // namespace

template <class T>
void batch_norm_sums(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  for_each_strip(x, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    double* __restrict sum = parameter_row<double>(call.outputs[0], strip, 0);
    double* __restrict squares = parameter_row<double>(call.outputs[0], strip, 1);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        const T* x_row = xs.row(i);
        for (std::int64_t c = 0; c < cols; ++c) {
          const auto value = static_cast<double>(x_row[c]);
          sum[c] += value;
          squares[c] += value * value;
        }
      }
    });
  });
}

template <class T>
void batch_norm(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  for_each_strip(x, [&](const Strip& strip) {
    const auto statistics = column_statistics<T>(call.inputs[1], strip, call.attributes);
    const T* gamma = parameter_row<T>(call.inputs[2], strip);
    T scale[kStripCols];
    for (std::int64_t c = 0; c < strip.cols; ++c) scale[c] = statistics.invstd[c] * gamma[c];
    const T* beta = parameter_row<T>(call.inputs[3], strip);
    normalize_strip<T>(x, call.outputs[0], strip, statistics.mean, scale, beta);
  });
}

template <class T>
void batch_norm_inference(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  for_each_strip(x, [&](const Strip& strip) {
    const T* variance = parameter_row<T>(call.inputs[2], strip);
    const T* gamma = parameter_row<T>(call.inputs[3], strip);
    T scale[kStripCols];
    for (std::int64_t c = 0; c < strip.cols; ++c) {
      scale[c] = static_cast<T>(inverse_std(variance[c], call.attributes.value)) * gamma[c];
    }
    const T* mean = parameter_row<T>(call.inputs[1], strip);
    const T* beta = parameter_row<T>(call.inputs[4], strip);
    normalize_strip<T>(x, call.outputs[0], strip, mean, scale, beta);
  });
}

template <class T>
void batch_norm_gamma_gradient(const OperatorCall& call) {
  const MatrixView& g = call.inputs[0];
  const MatrixView& x = call.inputs[1];
  for_each_strip(x, [&](const Strip& strip) {
    const StripRows<T> gs(g, strip);
    const StripRows<T> xs(x, strip);
    const auto statistics = column_statistics<T>(call.inputs[2], strip, call.attributes);
    T* __restrict sums = parameter_row<T>(call.outputs[0], strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        const T* g_row = gs.row(i);
        const T* x_row = xs.row(i);
        for (std::int64_t c = 0; c < cols; ++c) {
          sums[c] += g_row[c] * normalize(x_row[c], statistics.mean[c], statistics.invstd[c], T{0});
        }
      }
    });
  });
}

template <class T>
void batch_norm_gradient(const OperatorCall& call) {
  const MatrixView& g = call.inputs[0];
  const MatrixView& x = call.inputs[1];
  const MatrixView& dx = call.outputs[0];
  const auto count = static_cast<T>(call.attributes.count);
  for_each_strip(x, [&](const Strip& strip) {
    const StripRows<T> gs(g, strip);
    const StripRows<T> xs(x, strip);
    const StripRows<T> dxs(dx, strip);
    const auto statistics = column_statistics<T>(call.inputs[2], strip, call.attributes);
    const T* gamma = parameter_row<T>(call.inputs[3], strip);
    const T* dgamma = parameter_row<T>(call.inputs[4], strip);
    const T* dbeta = parameter_row<T>(call.inputs[5], strip);
    T scale[kStripCols];
    T mean_g[kStripCols];
    T mean_gx[kStripCols];
    for (std::int64_t c = 0; c < strip.cols; ++c) {
      scale[c] = statistics.invstd[c] * gamma[c];
      mean_g[c] = dbeta[c] / count;
      mean_gx[c] = dgamma[c] / count;
    }
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        const T* g_row = gs.row(i);
        const T* x_row = xs.row(i);
        T* __restrict dx_row = dxs.row(i);
        for (std::int64_t c = 0; c < cols; ++c) {
          const T xhat = normalize(x_row[c], statistics.mean[c], statistics.invstd[c], T{0});
          dx_row[c] = normalize_gradient(g_row[c], xhat, mean_g[c], mean_gx[c], scale[c]);
        }
      }
    });
  });
}

#define OOC_INSTANTIATE(T)                                         \
  template void batch_norm_sums<T>(const OperatorCall&);           \
  template void batch_norm<T>(const OperatorCall&);                \
  template void batch_norm_inference<T>(const OperatorCall&);      \
  template void batch_norm_gamma_gradient<T>(const OperatorCall&); \
  template void batch_norm_gradient<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
