// Element-wise functions and their gradients, by the maths of the CPU's.
#include "kernels/rows/cuda_row_kernels.h"
#include "kernels/rows/map_cuda.h"
#include "kernels/spec/element_math.h"
#include "storage/base/errors.h"

namespace ooc::cuda {
namespace {

// A negative slope would make the output's sign no sign of the input's.
template <class T>
T slope_of(const GroupCall& call) {
  OOC_CHECK(call.attributes.value >= 0);
  return static_cast<T>(call.attributes.value);
}

template <class T>
struct LeakyRelu {
  T slope;
  __device__ T operator()(T x) const { return ooc::leaky_relu(x, slope); }
};
template <class T>
struct LeakyReluGradient {
  T slope;
  __device__ T operator()(T g, T y) const { return ooc::leaky_relu_gradient(g, y, slope); }
};

}  // namespace

template <class T>
void leaky_relu(const GroupCall& call, cudaStream_t stream) {
  map<T, 1>(call, stream, LeakyRelu<T>{slope_of<T>(call)});
}
template <class T>
void leaky_relu_gradient(const GroupCall& call, cudaStream_t stream) {
  map<T, 2>(call, stream, LeakyReluGradient<T>{slope_of<T>(call)});
}

// The operator `name` of one input, or of a gradient and another one: function(...) by element.
#define OOC_FUNCTION(name, function)                      \
  struct Map_##name {                                     \
    template <class T>                                    \
    __device__ T operator()(T x) const {                  \
      return ooc::function(x);                            \
    }                                                     \
  };                                                      \
  template <class T>                                      \
  void name(const GroupCall& call, cudaStream_t stream) { \
    map<T, 1>(call, stream, Map_##name());                \
  }
#define OOC_GRADIENT(name)                                \
  struct Map_##name {                                     \
    template <class T>                                    \
    __device__ T operator()(T g, T other) const {         \
      return ooc::name(g, other);                         \
    }                                                     \
  };                                                      \
  template <class T>                                      \
  void name(const GroupCall& call, cudaStream_t stream) { \
    map<T, 2>(call, stream, Map_##name());                \
  }
OOC_FUNCTION(sigmoid, sigmoid)
OOC_FUNCTION(tanh, hyperbolic_tangent)
OOC_FUNCTION(elu, elu)
OOC_FUNCTION(gelu, gelu)
OOC_FUNCTION(exp, exponential)
OOC_GRADIENT(sigmoid_gradient)
OOC_GRADIENT(tanh_gradient)
OOC_GRADIENT(elu_gradient)
OOC_GRADIENT(gelu_gradient)
#undef OOC_FUNCTION
#undef OOC_GRADIENT

#define OOC_INSTANTIATE(T)                                              \
  template void sigmoid<T>(const GroupCall&, cudaStream_t);             \
  template void sigmoid_gradient<T>(const GroupCall&, cudaStream_t);    \
  template void tanh<T>(const GroupCall&, cudaStream_t);                \
  template void tanh_gradient<T>(const GroupCall&, cudaStream_t);       \
  template void leaky_relu<T>(const GroupCall&, cudaStream_t);          \
  template void leaky_relu_gradient<T>(const GroupCall&, cudaStream_t); \
  template void elu<T>(const GroupCall&, cudaStream_t);                 \
  template void elu_gradient<T>(const GroupCall&, cudaStream_t);        \
  template void gelu<T>(const GroupCall&, cudaStream_t);                \
  template void gelu_gradient<T>(const GroupCall&, cudaStream_t);       \
  template void exp<T>(const GroupCall&, cudaStream_t);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cuda
