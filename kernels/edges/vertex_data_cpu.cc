// Columns computed from what a dataset keeps of its vertices, and from sums over their edges.
#include <algorithm>
#include <cmath>

#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "kernels/spec/degree_factor.h"
#include "storage/base/types.h"
#include "storage/dataset/dataset.h"

namespace ooc::cpu {
template <class T>
void degree_factor(const OperatorCall& call) {
  const MatrixView& degrees = call.inputs[0];
  const MatrixView& y = call.outputs[0];
  const auto factor = static_cast<DegreeFactor>(call.attributes.value);
  const auto* from = degrees.data<std::int32_t>(0);
  T* to = y.data<T>(0);
  for (std::int64_t i = 0; i < y.rows; ++i) {
    const std::int32_t* row = from + i * degrees.stride(0);
    to[i * y.stride(0)] =
        static_cast<T>(degree_factor_of(factor, row[kInDegree], row[kOutDegree], row[kSelfLoops]));
  }
}

namespace {

// A column of factors of a column of sums.
template <class T, class Of>
void map_sums(const OperatorCall& call, Of&& factor_of_sum) {
  const MatrixView& sums = call.inputs[0];
  const MatrixView& factors = call.outputs[0];
  for (std::int64_t i = 0; i < factors.rows; ++i) {
    factors.data<T>(0)[i * factors.stride(0)] =
        static_cast<T>(factor_of_sum(sums.data<double>(0)[i * sums.stride(0)]));
  }
}

}  // namespace

template <class T>
void inverse(const OperatorCall& call) {
  map_sums<T>(call, [](double sum) { return sum != 0 ? 1 / sum : 0; });
}

template <class T>
void inverse_sqrt(const OperatorCall& call) {
  map_sums<T>(call, [](double sum) { return sum > 0 ? 1 / std::sqrt(sum) : 0; });
}

template <class T>
void count_zeros(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  std::int64_t count = 0;
  for_each_strip(x, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    for (std::int64_t i = 0; i < x.rows; ++i) {
      count += std::count(xs.row(i), xs.row(i) + strip.cols, T{0});
    }
  });
  *call.outputs[0].data<double>(0) += static_cast<double>(count);
}

template <class T>
void binary_label(const OperatorCall& call) {
  const MatrixView& labels = call.inputs[0];
  const MatrixView& y = call.outputs[0];
  const auto* from = labels.data<std::int32_t>(0);
  auto* to = y.data<std::uint8_t>(0);
  for (std::int64_t i = 0; i < y.rows; ++i) {
    const std::int32_t label = from[i * labels.stride(0)];
    to[i * y.stride(0)] = label < 0 ? kUnlabelled : static_cast<std::uint8_t>(label);
  }
}

#define OOC_INSTANTIATE(T)                             \
  template void degree_factor<T>(const OperatorCall&); \
  template void inverse<T>(const OperatorCall&);       \
  template void inverse_sqrt<T>(const OperatorCall&);  \
  template void count_zeros<T>(const OperatorCall&);   \
  template void binary_label<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
