#include "kernels/loss/split_of.h"
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "kernels/spec/element_math.h"
#include "kernels/spec/row_kernels.h"
#include "storage/base/errors.h"

namespace ooc::cpu {
namespace {

constexpr std::uint8_t kUnlabelled = 255;

// Sums over the labelled entries of a row.
struct RowLoss {
  double loss = 0;
  double right = 0;
  double labelled = 0;
};

// Of one strip's columns; what lies after them, or has no label, adds nothing.
template <class T>
struct StripTerms {
  T e[kStripCols] = {};         // e^-|x|
  T rest[kStripCols] = {};      // max(x, 0) - x y
  T right[kStripCols] = {};     // 1 where x > 0 says what y says
  T labelled[kStripCols] = {};  // 1 where there is a label
};

template <class T>
double strip_sum(const T* values) {
  return lane_sum(kStripCols, [values](std::int64_t c) { return static_cast<double>(values[c]); });
}

// The factors 1 + e^-|x| lie between 1 and 2: those of a strip are multiplied, and one logarithm is
// taken.
template <class T>
double log_sum(const StripTerms<T>& terms) {
  constexpr std::int64_t kLanes = 8;
  double factors[kLanes] = {1, 1, 1, 1, 1, 1, 1, 1};
  for (std::int64_t c = 0; c < kStripCols; c += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      factors[lane] *= 1 + static_cast<double>(terms.e[c + lane]);
    }
  }
  double product = 1;
  for (const double factor : factors) product *= factor;
  return std::log(product);
}

// The sum of w (log(1 + e^-|x|) + max(x, 0) - x y), where w is 1 for labels of 0.
template <class T>
double weighted_sum(const StripTerms<T>& terms, const std::uint8_t* y, const T* weights,
                    std::int64_t cols) {
  double sum = 0;
  for (std::int64_t c = 0; c < cols; ++c) {
    const double weight = y[c] == 1 ? double{weights[c]} : 1.0;
    sum += weight * (std::log1p(double{terms.e[c]}) + double{terms.rest[c]});
  }
  return sum;
}

// log(1 + e^-|x|) + max(x, 0) - x y of every labelled class. `weights`: of labels of 1; null: none.
template <class T>
RowLoss row_loss(const MatrixView& logits, const MatrixView& labels, const T* weights,
                 std::int64_t row) {
  RowLoss sums;
  for_each_strip(logits, [&](const Strip& strip) {
    const T* x = StripRows<T>(logits, strip).row(row);
    const std::uint8_t* y = StripRows<std::uint8_t>(labels, strip).row(row);
    StripTerms<T> terms;
    with_columns(strip.cols, [=, &terms](auto cols) {
      for (std::int64_t c = 0; c < cols; ++c) {
        const bool labelled = y[c] != kUnlabelled, bit = y[c] == 1;
        const T positive = x[c] > T{0} ? x[c] : T{0};
        const T e = exp_nonpositive(-std::abs(x[c]));
        const T rest = positive - (bit ? x[c] : T{0});
        terms.e[c] = labelled ? e : T{0};
        terms.rest[c] = labelled ? rest : T{0};
        terms.right[c] = labelled && (x[c] > T{0}) == bit ? T{1} : T{0};
        terms.labelled[c] = labelled ? T{1} : T{0};
      }
    });
    sums.loss += weights == nullptr
                     ? log_sum(terms) + strip_sum(terms.rest)
                     : weighted_sum(terms, y, weights + strip.first_column, strip.cols);
    sums.right += strip_sum(terms.right);
    sums.labelled += strip_sum(terms.labelled);
  });
  return sums;
}

// The weights of a call that has them.
template <class T>
const T* weights_of(const OperatorCall& call) {
  return call.inputs.size() < 4 ? nullptr : call.inputs[3].data<T>(0);
}

template <class T>
void add_losses(const OperatorCall& call) {
  const MatrixView& sums = call.outputs[0];
  for (std::int64_t i = 0; i < call.inputs[0].rows; ++i) {
    const std::uint8_t split = split_of(call, i);
    if (split == 0) continue;
    const RowLoss loss = row_loss<T>(call.inputs[0], call.inputs[1], weights_of<T>(call), i);
    double* row = sums.data<double>(0) + (split - 1) * sums.stride(0);
    row[0] += loss.loss;
    row[1] += loss.right;
    row[2] += loss.labelled;
  }
}

template <class T>
void write_gradients(const OperatorCall& call) {
  const MatrixView &logits = call.inputs[0], &labels = call.inputs[1];
  const MatrixView& dx = call.outputs[0];
  OOC_CHECK(call.attributes.count > 0);
  const T scale = static_cast<T>(1.0 / call.attributes.count);
  const T* const weights = weights_of<T>(call);
  for_each_strip(dx, [&](const Strip& strip) {
    const StripRows<T> xs(logits, strip);
    const StripRows<std::uint8_t> ys(labels, strip);
    const StripRows<T> dxs(dx, strip);
    T of_one[kStripCols];  // the scale of labels of 1
    for (std::int64_t c = 0; c < strip.cols; ++c) {
      of_one[c] = weights == nullptr ? scale : scale * weights[strip.first_column + c];
    }
    for (std::int64_t i = 0; i < dx.rows; ++i) {
      const T* __restrict x = xs.row(i);
      const std::uint8_t* __restrict y = ys.row(i);
      T* __restrict gradient = dxs.row(i);
      if (split_of(call, i) != kTrainSplit) {
        std::fill_n(gradient, strip.cols, T{0});
        continue;
      }
      with_columns(strip.cols, [=, &of_one](auto cols) {
        for (std::int64_t c = 0; c < cols; ++c) {
          const T probability = ooc::sigmoid(x[c]);
          const T slope = y[c] == 1 ? of_one[c] * (probability - T{1}) : scale * probability;
          gradient[c] = y[c] == kUnlabelled ? T{0} : slope;
        }
      });
    }
  });
}

}  // namespace

template <class T>
void sigmoid_cross_entropy(const OperatorCall& call) {
  add_losses<T>(call);
}

template <class T>
void sigmoid_cross_entropy_gradient(const OperatorCall& call) {
  write_gradients<T>(call);
}

template <class T>
void sigmoid_cross_entropy_weighted(const OperatorCall& call) {
  add_losses<T>(call);
}

template <class T>
void sigmoid_cross_entropy_weighted_gradient(const OperatorCall& call) {
  write_gradients<T>(call);
}

#define OOC_INSTANTIATE(T)                                              \
  template void sigmoid_cross_entropy<T>(const OperatorCall&);          \
  template void sigmoid_cross_entropy_gradient<T>(const OperatorCall&); \
  template void sigmoid_cross_entropy_weighted<T>(const OperatorCall&); \
  template void sigmoid_cross_entropy_weighted_gradient<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
