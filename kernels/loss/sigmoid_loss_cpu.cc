#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "kernels/spec/element_math.h"
#include "kernels/spec/row_kernels.h"
#include "storage/base/errors.h"

namespace ooc::cpu {
namespace {

constexpr std::uint8_t kLastSplit = 3;
constexpr std::uint8_t kUnlabelled = 255;

// The split in which a row counts, 0 for none.
std::uint8_t split_of(const OperatorCall& call, std::int64_t row) {
  const MatrixView &labels = call.inputs[1], &splits = call.inputs[2];
  const std::uint8_t split = splits.data<std::uint8_t>(0)[row * splits.stride(0)];
  OOC_CHECK(split <= kLastSplit);
  const bool labelled = labels.data<std::uint8_t>(0)[row * labels.stride(0)] != kUnlabelled;
  return labelled ? split : std::uint8_t{0};
}

struct RowLoss {
  double loss = 0;     // summed over the classes
  double correct = 0;  // bits
};

// Of one strip's columns; what lies after them adds nothing.
template <class T>
struct StripTerms {
  T e[kStripCols] = {};      // e^-|x|
  T rest[kStripCols] = {};   // max(x, 0) - x y
  T right[kStripCols] = {};  // 1 where x > 0 says what y says
};

// max(x, 0) - x y + log(1 + e^-|x|) of every class. The factors 1 + e^-|x| lie between 1 and 2:
// those of a strip are multiplied, and one logarithm is taken.
template <class T>
RowLoss row_loss(const MatrixView& logits, const MatrixView& labels, std::int64_t row) {
  RowLoss sums;
  for_each_strip(logits, [&](const Strip& strip) {
    const T* x = StripRows<T>(logits, strip).row(row);
    const std::uint8_t* y = StripRows<std::uint8_t>(labels, strip).row(row);
    StripTerms<T> terms;
    with_columns(strip.cols, [=, &terms](auto cols) {
      for (std::int64_t c = 0; c < cols; ++c) {
        const T bit = static_cast<T>(y[c]);
        const T positive = x[c] > T{0} ? x[c] : T{0};
        terms.e[c] = exp_nonpositive(-std::abs(x[c]));
        terms.rest[c] = positive - (bit > T{0} ? x[c] : T{0});
        terms.right[c] = x[c] > T{0} ? bit : T{1} - bit;
      }
    });
    constexpr std::int64_t kLanes = 8;
    double factors[kLanes] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (std::int64_t c = 0; c < kStripCols; c += kLanes) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        factors[lane] *= 1 + static_cast<double>(terms.e[c + lane]);
      }
    }
    double product = 1;
    for (const double factor : factors) product *= factor;
    const auto sum_of = [](const T* values) {
      return lane_sum(kStripCols,
                      [values](std::int64_t c) { return static_cast<double>(values[c]); });
    };
    sums.loss += std::log(product) + sum_of(terms.rest);
    sums.correct += sum_of(terms.right);
  });
  return sums;
}

}  // namespace

template <class T>
void sigmoid_cross_entropy(const OperatorCall& call) {
  const MatrixView& logits = call.inputs[0];
  const MatrixView& sums = call.outputs[0];
  const auto classes = static_cast<double>(logits.cols);
  for (std::int64_t i = 0; i < logits.rows; ++i) {
    const std::uint8_t split = split_of(call, i);
    if (split == 0) continue;
    const RowLoss loss = row_loss<T>(logits, call.inputs[1], i);
    double* row = sums.data<double>(0) + (split - 1) * sums.stride(0);
    row[0] += loss.loss / classes;
    row[1] += loss.correct / classes;
    row[2] += 1;
  }
}

template <class T>
void sigmoid_cross_entropy_gradient(const OperatorCall& call) {
  const MatrixView &logits = call.inputs[0], &labels = call.inputs[1];
  const MatrixView& dx = call.outputs[0];
  OOC_CHECK(call.attributes.count > 0);
  const T scale = static_cast<T>(1.0 / (call.attributes.count * static_cast<double>(logits.cols)));
  for_each_strip(dx, [&](const Strip& strip) {
    const StripRows<T> xs(logits, strip);
    const StripRows<std::uint8_t> ys(labels, strip);
    const StripRows<T> dxs(dx, strip);
    for (std::int64_t i = 0; i < dx.rows; ++i) {
      const T* __restrict x = xs.row(i);
      const std::uint8_t* __restrict y = ys.row(i);
      T* __restrict gradient = dxs.row(i);
      if (split_of(call, i) != kTrainSplit) {
        std::fill_n(gradient, strip.cols, T{0});
        continue;
      }
      with_columns(strip.cols, [=](auto cols) {
        for (std::int64_t c = 0; c < cols; ++c) {
          gradient[c] = scale * (ooc::sigmoid(x[c]) - (y[c] != 0 ? T{1} : T{0}));
        }
      });
    }
  });
}

#define OOC_INSTANTIATE(T)                                     \
  template void sigmoid_cross_entropy<T>(const OperatorCall&); \
  template void sigmoid_cross_entropy_gradient<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
