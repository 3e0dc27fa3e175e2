// Element-wise functions and their gradients. Most gradients read the function's own output, so
// that the input need not be kept.
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "kernels/spec/element_math.h"
#include "storage/base/errors.h"

namespace ooc::cpu {
namespace {

template <class T, class Op>
void map_call(const OperatorCall& call, Op op) {
  map_elements<T>(call.inputs[0], call.outputs[0], op);
}

template <class T, class Op>
void map_gradient(const OperatorCall& call, Op op) {
  map_elements<T>(call.inputs[0], call.inputs[1], call.outputs[0], op);
}

// A negative slope would make the output's sign no sign of the input's.
template <class T>
T slope_of(const OperatorCall& call) {
  OOC_CHECK(call.attributes.value >= 0);
  return static_cast<T>(call.attributes.value);
}

}  // namespace

template <class T>
void sigmoid(const OperatorCall& call) {
  map_call<T>(call, [](T x) { return ooc::sigmoid(x); });
}

template <class T>
void sigmoid_gradient(const OperatorCall& call) {
  map_gradient<T>(call, [](T g, T y) { return ooc::sigmoid_gradient(g, y); });
}

template <class T>
void tanh(const OperatorCall& call) {
  map_call<T>(call, [](T x) { return hyperbolic_tangent(x); });
}

template <class T>
void tanh_gradient(const OperatorCall& call) {
  map_gradient<T>(call, [](T g, T y) { return ooc::tanh_gradient(g, y); });
}

template <class T>
void leaky_relu(const OperatorCall& call) {
  map_call<T>(call, [slope = slope_of<T>(call)](T x) { return ooc::leaky_relu(x, slope); });
}

template <class T>
void leaky_relu_gradient(const OperatorCall& call) {
  map_gradient<T>(call, [slope = slope_of<T>(call)](T g, T y) {
    return ooc::leaky_relu_gradient(g, y, slope);
  });
}

template <class T>
void elu(const OperatorCall& call) {
  map_call<T>(call, [](T x) { return ooc::elu(x); });
}

template <class T>
void elu_gradient(const OperatorCall& call) {
  map_gradient<T>(call, [](T g, T y) { return ooc::elu_gradient(g, y); });
}

template <class T>
void gelu(const OperatorCall& call) {
  map_call<T>(call, [](T x) { return ooc::gelu(x); });
}

template <class T>
void gelu_gradient(const OperatorCall& call) {
  map_gradient<T>(call, [](T g, T x) { return ooc::gelu_gradient(g, x); });
}

template <class T>
void exp(const OperatorCall& call) {
  map_call<T>(call, [](T x) { return exponential(x); });
}

#define OOC_INSTANTIATE(T)                                   \
  template void sigmoid<T>(const OperatorCall&);             \
  template void sigmoid_gradient<T>(const OperatorCall&);    \
  template void tanh<T>(const OperatorCall&);                \
  template void tanh_gradient<T>(const OperatorCall&);       \
  template void leaky_relu<T>(const OperatorCall&);          \
  template void leaky_relu_gradient<T>(const OperatorCall&); \
  template void elu<T>(const OperatorCall&);                 \
  template void elu_gradient<T>(const OperatorCall&);        \
  template void gelu<T>(const OperatorCall&);                \
  template void gelu_gradient<T>(const OperatorCall&);       \
  template void exp<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
