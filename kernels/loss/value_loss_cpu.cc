#include "kernels/loss/split_of.h"
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "kernels/spec/element_math.h"
#include "kernels/spec/row_kernels.h"
#include "storage/base/errors.h"

namespace ooc::cpu {
namespace {}  // namespace

template <class T>
void value_loss(const OperatorCall& call) {
  const MatrixView &x = call.inputs[0], &y = call.inputs[1];
  const MatrixView& sums = call.outputs[0];
  const auto loss = static_cast<ValueLoss>(call.attributes.value);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    const std::uint8_t split = split_of(call, i);
    if (split == 0) continue;
    double sum = 0, labelled = 0;
    for_each_strip(x, [&](const Strip& strip) {
      const T* values = StripRows<T>(x, strip).row(i);
      const float* labels = StripRows<float>(y, strip).row(i);
      for (std::int64_t c = 0; c < strip.cols; ++c) {
        if (std::isnan(labels[c])) continue;
        sum += loss_of_value(loss, double{values[c]} - double{labels[c]});
        labelled += 1;
      }
    });
    double* row = sums.data<double>(0) + (split - 1) * sums.stride(0);
    row[0] += sum;
    row[1] += labelled;
  }
}

template <class T>
void value_loss_gradient(const OperatorCall& call) {
  const MatrixView &x = call.inputs[0], &y = call.inputs[1];
  const MatrixView& dx = call.outputs[0];
  OOC_CHECK(call.attributes.count > 0);
  const auto loss = static_cast<ValueLoss>(call.attributes.value);
  for_each_strip(dx, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    const StripRows<float> ys(y, strip);
    const StripRows<T> dxs(dx, strip);
    for (std::int64_t i = 0; i < dx.rows; ++i) {
      const T* values = xs.row(i);
      const float* labels = ys.row(i);
      T* gradient = dxs.row(i);
      const bool trained_on = split_of(call, i) == kTrainSplit;
      for (std::int64_t c = 0; c < strip.cols; ++c) {
        const bool counts = trained_on && !std::isnan(labels[c]);
        const double slope = loss_slope(loss, double{values[c]} - double{labels[c]});
        gradient[c] = counts ? static_cast<T>(slope / call.attributes.count) : T{0};
      }
    }
  });
}

#define OOC_INSTANTIATE(T)                          \
  template void value_loss<T>(const OperatorCall&); \
  template void value_loss_gradient<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
