#include "kernels/rows/cpu_heads.h"
#include "kernels/rows/cpu_row_kernels.h"

namespace ooc::cpu {
namespace {

// Y[i, head] = the sum over the head's columns of term(strip)(i, column inside the strip).
template <class T, class MakeTerm>
void sum_heads(const MatrixView& x, const MatrixView& y, MakeTerm make_term) {
  const HeadValues<T> sums(y);
  for_each_strip(x, [&](const Strip& strip) {
    const auto term = make_term(strip);
    HeadParts(strip, x.cols / y.cols)
        .for_each_row(x.rows, [=](std::int64_t i, const HeadPart& part, auto cols) {
          const auto row = term(i, part.offset);
          const T sum = lane_sum<T>(cols, row);
          T& total = sums(i, part.head);
          total = part.first ? sum : total + sum;
        });
  });
}

}  // namespace

template <class T>
void scale_heads(const OperatorCall& call) {
  const MatrixView& factors = call.inputs[1];
  map_heads<T>(call.inputs[0], factors.cols, call.outputs[0], HeadValues<T>(factors),
               [](T f, T x) { return f * x; });
}

template <class T>
void head_dot(const OperatorCall& call) {
  const MatrixView& a = call.inputs[0];
  const MatrixView& b = call.inputs[1];
  sum_heads<T>(a, call.outputs[0], [&](const Strip& strip) {
    return [as = StripRows<T>(a, strip), bs = StripRows<T>(b, strip)](std::int64_t i,
                                                                      std::int64_t offset) {
      return [a_row = as.row(i) + offset, b_row = bs.row(i) + offset](std::int64_t c) {
        return a_row[c] * b_row[c];
      };
    };
  });
}

template <class T>
void head_sum(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  sum_heads<T>(x, call.outputs[0], [&](const Strip& strip) {
    return [xs = StripRows<T>(x, strip)](std::int64_t i, std::int64_t offset) {
      return [x_row = xs.row(i) + offset](std::int64_t c) { return x_row[c]; };
    };
  });
}

template <class T>
void head_broadcast(const OperatorCall& call) {
  const MatrixView& y = call.outputs[0];
  const MatrixView& values = call.inputs[0];
  for_each_strip(y, [&](const Strip& strip) {
    const StripRows<T> ys(y, strip);
    HeadParts(strip, y.cols / values.cols)
        .for_each_row(y.rows, [ys, f = HeadValues<T>(values)](std::int64_t i, const HeadPart& part,
                                                              auto cols) {
          std::fill_n(ys.row(i) + part.offset, static_cast<std::int64_t>(cols), f(i, part.head));
        });
  });
}

template <class T>
void softmax_normalize(const OperatorCall& call) {
  const HeadValues<T> sums(call.inputs[1]);
  const auto inverse = [sums](std::int64_t i, std::int64_t head) {
    const T z = sums(i, head);
    return z == T{0} ? T{0} : T{1} / z;
  };
  // A vertex without edges holds nothing: what its row of A is does not matter.
  map_heads<T>(call.inputs[0], call.inputs[1].cols, call.outputs[0], inverse,
               [](T f, T a) { return f == T{0} ? T{0} : f * a; });
}

template <class T>
void heads_mean(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& y = call.outputs[0];
  const T share = T{1} / static_cast<T>(call.attributes.heads);
  for (std::int64_t head = 0; head < call.attributes.heads; ++head) {
    const std::int64_t first = head * y.cols;
    for_each_piece(y.cols, {{x, first}, {y, 0}}, [&](std::int64_t offset, std::int64_t piece) {
      const StripRows<T> xs(x, first + offset);
      const StripRows<T> ys(y, offset);
      with_columns(piece, [=, rows = y.rows](auto cols) {
        for (std::int64_t i = 0; i < rows; ++i) {
          const T* __restrict x_row = xs.row(i);
          T* __restrict y_row = ys.row(i);
          for (std::int64_t c = 0; c < cols; ++c) {
            y_row[c] = head == 0 ? share * x_row[c] : y_row[c] + share * x_row[c];
          }
        }
      });
    });
  }
}

template <class T>
void heads_spread(const OperatorCall& call) {
  const MatrixView& g = call.inputs[0];
  const MatrixView& dx = call.outputs[0];
  const T share = T{1} / static_cast<T>(call.attributes.heads);
  for (std::int64_t head = 0; head < call.attributes.heads; ++head) {
    const std::int64_t first = head * g.cols;
    for_each_piece(g.cols, {{g, 0}, {dx, first}}, [&](std::int64_t offset, std::int64_t piece) {
      map_piece<T>(StripRows<T>(g, offset), StripRows<T>(dx, first + offset), g.rows, piece,
                   [share](T value) { return share * value; });
    });
  }
}

#define OOC_INSTANTIATE(T)                                 \
  template void scale_heads<T>(const OperatorCall&);       \
  template void head_dot<T>(const OperatorCall&);          \
  template void head_sum<T>(const OperatorCall&);          \
  template void head_broadcast<T>(const OperatorCall&);    \
  template void softmax_normalize<T>(const OperatorCall&); \
  template void heads_mean<T>(const OperatorCall&);        \
  template void heads_spread<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
