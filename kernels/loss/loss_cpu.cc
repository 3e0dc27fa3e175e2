#include <limits>

#include "kernels/loss/split_of.h"
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "kernels/spec/element_math.h"
#include "kernels/spec/row_kernels.h"
#include "storage/base/errors.h"

namespace ooc::cpu {
namespace {

template <class T>
struct RowSoftmax {
  T largest = 0;   // logit
  double sum = 0;  // of exp(logit - largest)
};

template <class T>
RowSoftmax<T> row_softmax(const MatrixView& logits, std::int64_t row) {
  T largest = -std::numeric_limits<T>::infinity();
  for_each_strip(logits, [&](const Strip& strip) {
    const T* x = StripRows<T>(logits, strip).row(row);
    with_columns(strip.cols, [&](auto cols) {
      largest = lane_max(cols, largest, [&](std::int64_t c) { return x[c]; });
    });
  });
  double sum = 0;
  for_each_strip(logits, [&](const Strip& strip) {
    const T* x = StripRows<T>(logits, strip).row(row);
    with_columns(strip.cols, [&](auto cols) {
      sum += lane_sum(cols, [x, largest](std::int64_t c) {
        return static_cast<double>(exp_nonpositive(x[c] - largest));
      });
    });
  });
  return {largest, sum};
}

template <class T>
T element(const MatrixView& matrix, std::int64_t row, std::int64_t column) {
  const std::int64_t slice = column / matrix.slice_width;
  return matrix.data<T>(slice)[row * matrix.stride(slice) + column % matrix.slice_width];
}

// Whether the label is the row's argmax: no other logit is larger, none before it is as large.
template <class T>
bool is_argmax(const MatrixView& logits, std::int64_t row, std::int64_t label, T largest) {
  if (!(element<T>(logits, row, label) == largest)) return false;
  for (std::int64_t c = 0; c < label; ++c) {
    if (element<T>(logits, row, c) == largest) return false;
  }
  return true;
}

// The label of a row that counts in its split, otherwise -1.
std::int64_t label_of(const OperatorCall& call, std::int64_t row, std::uint8_t split) {
  if (split == 0) return -1;
  const MatrixView& labels = call.inputs[1];
  const std::int32_t label = labels.data<std::int32_t>(0)[row * labels.stride(0)];
  OOC_CHECK(label < call.inputs[0].cols);
  return label;
}

// The weight of a class where the call has weights, otherwise 1.
template <class T>
double weight_of(const OperatorCall& call, std::int64_t label) {
  return call.inputs.size() < 4 ? 1.0 : static_cast<double>(call.inputs[3].data<T>(0)[label]);
}

// The fourth column, where there is one, is the sum of the weights.
template <class T>
void add_losses(const OperatorCall& call) {
  const MatrixView& logits = call.inputs[0];
  const MatrixView& sums = call.outputs[0];
  for (std::int64_t i = 0; i < logits.rows; ++i) {
    const std::uint8_t split = split_of(call, i);
    const std::int64_t label = label_of(call, i, split);
    if (label < 0) continue;
    const RowSoftmax<T> softmax = row_softmax<T>(logits, i);
    const auto largest = static_cast<double>(softmax.largest);
    double* row = sums.data<double>(0) + (split - 1) * sums.stride(0);
    const double weight = weight_of<T>(call, label);
    const auto logit = static_cast<double>(element<T>(logits, i, label));
    row[0] += weight * (std::log(softmax.sum) + (largest - logit));
    row[1] += is_argmax(logits, i, label, softmax.largest) ? 1 : 0;
    row[2] += 1;
    if (sums.cols > 3) row[3] += weight;
  }
}

template <class T>
void write_gradients(const OperatorCall& call) {
  const MatrixView& logits = call.inputs[0];
  const MatrixView& dx = call.outputs[0];
  OOC_CHECK(call.attributes.count > 0);
  for (std::int64_t i = 0; i < logits.rows; ++i) {
    const std::uint8_t split = split_of(call, i);
    const std::int64_t label = split == kTrainSplit ? label_of(call, i, split) : -1;
    const bool counts = label >= 0;
    const RowSoftmax<T> softmax = counts ? row_softmax<T>(logits, i) : RowSoftmax<T>{};
    const T largest = softmax.largest;
    const double weight = counts ? weight_of<T>(call, label) / call.attributes.count : 0.0;
    const auto scale = counts ? static_cast<T>(weight / softmax.sum) : T{0};
    for_each_strip(dx, [&](const Strip& strip) {
      const T* x = StripRows<T>(logits, strip).row(i);
      T* __restrict gradient = StripRows<T>(dx, strip).row(i);
      if (!counts) {
        std::fill_n(gradient, strip.cols, T{0});
        return;
      }
      with_columns(strip.cols, [=](auto cols) {
        for (std::int64_t c = 0; c < cols; ++c) {
          gradient[c] = exp_nonpositive(x[c] - largest) * scale;
        }
      });
      const std::int64_t c = label - strip.first_column;
      if (c >= 0 && c < strip.cols) gradient[c] -= static_cast<T>(weight);
    });
  }
}

}  // namespace

template <class T>
void softmax_cross_entropy(const OperatorCall& call) {
  add_losses<T>(call);
}

template <class T>
void softmax_cross_entropy_gradient(const OperatorCall& call) {
  write_gradients<T>(call);
}

template <class T>
void softmax_cross_entropy_weighted(const OperatorCall& call) {
  add_losses<T>(call);
}

template <class T>
void softmax_cross_entropy_weighted_gradient(const OperatorCall& call) {
  write_gradients<T>(call);
}

#define OOC_INSTANTIATE(T)                                              \
  template void softmax_cross_entropy<T>(const OperatorCall&);          \
  template void softmax_cross_entropy_gradient<T>(const OperatorCall&); \
  template void softmax_cross_entropy_weighted<T>(const OperatorCall&); \
  template void softmax_cross_entropy_weighted_gradient<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
