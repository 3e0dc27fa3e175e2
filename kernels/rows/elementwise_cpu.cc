#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "kernels/spec/element_math.h"

namespace ooc::cpu {

template <class T>
void add(const OperatorCall& call) {
  map_elements<T>(call.inputs[0], call.inputs[1], call.outputs[0], [](T a, T b) { return a + b; });
}

template <class T>
void sub(const OperatorCall& call) {
  map_elements<T>(call.inputs[0], call.inputs[1], call.outputs[0], [](T a, T b) { return a - b; });
}

template <class T>
void mul(const OperatorCall& call) {
  map_elements<T>(call.inputs[0], call.inputs[1], call.outputs[0], [](T a, T b) { return a * b; });
}

template <class T>
void affine(const OperatorCall& call) {
  const auto value = static_cast<T>(call.attributes.value);
  const auto shift = static_cast<T>(call.attributes.shift);
  map_elements<T>(call.inputs[0], call.outputs[0], [=](T x) { return value * x + shift; });
}

template <class T>
void maximum(const OperatorCall& call) {
  map_elements<T>(call.inputs[0], call.inputs[1], call.outputs[0],
                  [](T a, T b) { return ooc::maximum(a, b); });
}

template <class T>
void maximum_gradient(const OperatorCall& call) {
  map_elements<T>(call.inputs[0], call.inputs[1], call.inputs[2], call.outputs[0],
                  [](T g, T a, T b) { return a >= b ? g : T{0}; });
}

template <class T>
void relu(const OperatorCall& call) {
  map_elements<T>(call.inputs[0], call.outputs[0], [](T x) { return ooc::relu(x); });
}

template <class T>
void relu_gradient(const OperatorCall& call) {
  map_elements<T>(call.inputs[0], call.inputs[1], call.outputs[0],
                  [](T g, T y) { return ooc::relu_gradient(g, y); });
}

template <class T>
void scale_rows(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& y = call.outputs[0];
  const T* factors = call.inputs[1].data<T>(0);
  const std::int64_t factor_stride = call.inputs[1].stride(0);
  for_each_strip(y, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    const StripRows<T> ys(y, strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < y.rows; ++i) {
        const T factor = factors[i * factor_stride];
        const T* __restrict x_row = xs.row(i);
        T* __restrict y_row = ys.row(i);
        for (std::int64_t c = 0; c < cols; ++c) y_row[c] = factor * x_row[c];
      }
    });
  });
}

#define OOC_INSTANTIATE(T)                                \
  template void add<T>(const OperatorCall&);              \
  template void sub<T>(const OperatorCall&);              \
  template void mul<T>(const OperatorCall&);              \
  template void affine<T>(const OperatorCall&);           \
  template void maximum<T>(const OperatorCall&);          \
  template void maximum_gradient<T>(const OperatorCall&); \
  template void relu<T>(const OperatorCall&);             \
  template void relu_gradient<T>(const OperatorCall&);    \
  template void scale_rows<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
