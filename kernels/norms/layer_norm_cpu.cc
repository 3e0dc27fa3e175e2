// Layer norm is full-width: its rows are walked in runs short enough that all slices of a run stay
// in L1 or L2 between the statistics and their use.
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "kernels/spec/element_math.h"

namespace ooc::cpu {
namespace {

constexpr std::int64_t kRunRows = 64;

struct RowStatistics {
  double mean[kRunRows];
  double invstd[kRunRows];
};

// sums[i] += f(i, x) summed over the elements x of row first + i.
template <class T, class F>
void add_row_sums(const MatrixView& x, std::int64_t first, std::int64_t rows, double* sums, F f) {
  for_each_strip(x, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < rows; ++i) {
        const T* x_row = xs.row(first + i);
        sums[i] +=
            lane_sum(cols, [&](std::int64_t c) { return f(i, static_cast<double>(x_row[c])); });
      }
    });
  });
}

template <class T>
RowStatistics row_statistics(const MatrixView& x, std::int64_t first, std::int64_t rows,
                             double epsilon) {
  RowStatistics statistics = {};
  const auto cols = static_cast<double>(x.cols);
  double* mean = statistics.mean;
  double* invstd = statistics.invstd;
  add_row_sums<T>(x, first, rows, mean, [](std::int64_t, double value) { return value; });
  for (std::int64_t i = 0; i < rows; ++i) mean[i] /= cols;
  add_row_sums<T>(x, first, rows, invstd, [&](std::int64_t i, double value) {
    return (value - mean[i]) * (value - mean[i]);
  });
  for (std::int64_t i = 0; i < rows; ++i) invstd[i] = inverse_std(invstd[i] / cols, epsilon);
  return statistics;
}

// Means over a row of g gamma and of g gamma xhat.
struct GradientMeans {
  double g[kRunRows];
  double gx[kRunRows];
};

template <class T>
GradientMeans gradient_means(const OperatorCall& call, std::int64_t first, std::int64_t rows,
                             const RowStatistics& stats) {
  const MatrixView& x = call.inputs[1];
  GradientMeans means = {};
  for_each_strip(x, [&](const Strip& strip) {
    const StripRows<T> gs(call.inputs[0], strip);
    const StripRows<T> xs(x, strip);
    const T* gamma = parameter_row<T>(call.inputs[2], strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < rows; ++i) {
        const T* g_row = gs.row(first + i);
        const T* x_row = xs.row(first + i);
        const double mean = stats.mean[i];
        const auto g = [&](std::int64_t c) { return static_cast<double>(g_row[c] * gamma[c]); };
        means.g[i] += lane_sum(cols, g);
        means.gx[i] += stats.invstd[i] * lane_sum(cols, [&](std::int64_t c) {
                         return g(c) * (static_cast<double>(x_row[c]) - mean);
                       });
      }
    });
  });
  const auto width = static_cast<double>(x.cols);
  for (std::int64_t i = 0; i < rows; ++i) means.g[i] /= width;
  for (std::int64_t i = 0; i < rows; ++i) means.gx[i] /= width;
  return means;
}

// Calls body(first, rows, statistics) for every run of rows of x.
template <class T, class Body>
void for_each_run(const MatrixView& x, double epsilon, Body&& body) {
  for (std::int64_t first = 0; first < x.rows; first += kRunRows) {
    const std::int64_t rows = std::min(kRunRows, x.rows - first);
    body(first, rows, row_statistics<T>(x, first, rows, epsilon));
  }
}

}  // namespace

template <class T>
void layer_norm(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& y = call.outputs[0];
  for_each_run<T>(x, call.attributes.value, [&](auto first, auto rows, const RowStatistics& stats) {
    for_each_strip(y, [&](const Strip& strip) {
      const StripRows<T> xs(x, strip);
      const StripRows<T> ys(y, strip);
      const T* gamma = parameter_row<T>(call.inputs[1], strip);
      const T* beta = parameter_row<T>(call.inputs[2], strip);
      with_columns(strip.cols, [&](auto cols) {
        for (std::int64_t i = 0; i < rows; ++i) {
          const auto mean = static_cast<T>(stats.mean[i]);
          const auto invstd = static_cast<T>(stats.invstd[i]);
          const T* x_row = xs.row(first + i);
          T* __restrict y_row = ys.row(first + i);
          for (std::int64_t c = 0; c < cols; ++c) {
            y_row[c] = normalize(x_row[c], mean, invstd * gamma[c], beta[c]);
          }
        }
      });
    });
  });
}

template <class T>
void layer_norm_gradient(const OperatorCall& call) {
  const MatrixView& g = call.inputs[0];
  const MatrixView& x = call.inputs[1];
  const MatrixView& dx = call.outputs[0];
  for_each_run<T>(x, call.attributes.value, [&](auto first, auto rows, const RowStatistics& stats) {
    const GradientMeans means = gradient_means<T>(call, first, rows, stats);
    for_each_strip(dx, [&](const Strip& strip) {
      const StripRows<T> gs(g, strip);
      const StripRows<T> xs(x, strip);
      const StripRows<T> dxs(dx, strip);
      const T* gamma = parameter_row<T>(call.inputs[2], strip);
      with_columns(strip.cols, [&](auto cols) {
        for (std::int64_t i = 0; i < rows; ++i) {
          const auto mean = static_cast<T>(stats.mean[i]);
          const auto invstd = static_cast<T>(stats.invstd[i]);
          const auto row_g = static_cast<T>(means.g[i]);
          const auto row_gx = static_cast<T>(means.gx[i]);
          const T* g_row = gs.row(first + i);
          const T* x_row = xs.row(first + i);
          T* __restrict dx_row = dxs.row(first + i);
          for (std::int64_t c = 0; c < cols; ++c) {
            const T xhat = normalize(x_row[c], mean, invstd, T{0});
            dx_row[c] = normalize_gradient(g_row[c] * gamma[c], xhat, row_g, row_gx, invstd);
          }
        }
      });
    });
  });
}

template <class T>
void layer_norm_gamma_gradient(const OperatorCall& call) {
  const MatrixView& g = call.inputs[0];
  const MatrixView& x = call.inputs[1];
  for_each_run<T>(x, call.attributes.value, [&](auto first, auto rows, const RowStatistics& stats) {
    for_each_strip(x, [&](const Strip& strip) {
      const StripRows<T> gs(g, strip);
      const StripRows<T> xs(x, strip);
      T* __restrict sums = parameter_row<T>(call.outputs[0], strip);
      with_columns(strip.cols, [&](auto cols) {
        for (std::int64_t i = 0; i < rows; ++i) {
          const auto mean = static_cast<T>(stats.mean[i]);
          const auto invstd = static_cast<T>(stats.invstd[i]);
          const T* g_row = gs.row(first + i);
          const T* x_row = xs.row(first + i);
          for (std::int64_t c = 0; c < cols; ++c) {
            sums[c] += g_row[c] * normalize(x_row[c], mean, invstd, T{0});
          }
        }
      });
    });
  });
}

#define OOC_INSTANTIATE(T)                                   \
  template void layer_norm<T>(const OperatorCall&);          \
  template void layer_norm_gradient<T>(const OperatorCall&); \
  template void layer_norm_gamma_gradient<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
