#include "kernels/rows/cuda_row_kernels.h"
#include "kernels/rows/map_cuda.h"
#include "kernels/spec/element_math.h"

namespace ooc::cuda {
namespace {

struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Subtract {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a - b;
  }
};
struct Multiply {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a * b;
  }
};
template <class T>
struct Affine {
  T value, shift;
  __device__ T operator()(T x) const { return value * x + shift; }
};
struct Maximum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return ooc::maximum(a, b);
  }
};
struct MaximumGradient {
  template <class T>
  __device__ T operator()(T g, T a, T b) const {
    return a >= b ? g : T{0};
  }
};
struct Relu {
  template <class T>
  __device__ T operator()(T x) const {
    return ooc::relu(x);
  }
};
struct ReluGradient {
  template <class T>
  __device__ T operator()(T g, T y) const {
    return ooc::relu_gradient(g, y);
  }
};

// The factors are one column.
template <class T>
__global__ void __launch_bounds__(kThreads, 4)
    scale_each_row(const GroupView* y, const GroupView* x, const GroupView* factors) {
  const SliceRows<T> to(y[blockIdx.z], blockIdx.y);
  const SliceRows<const T> from(x[blockIdx.z], blockIdx.y), factor(factors[blockIdx.z], 0);
  for_each_element(y[blockIdx.z], [&](std::int64_t row, std::int64_t col) {
    to(row, col) = factor(row, 0) * from(row, col);
  });
}

}  // namespace

template <class T>
void add(const GroupCall& call, cudaStream_t stream) {
  map<T, 2>(call, stream, Add());
}
template <class T>
void sub(const GroupCall& call, cudaStream_t stream) {
  map<T, 2>(call, stream, Subtract());
}
template <class T>
void mul(const GroupCall& call, cudaStream_t stream) {
  map<T, 2>(call, stream, Multiply());
}
template <class T>
void affine(const GroupCall& call, cudaStream_t stream) {
  map<T, 1>(
      call, stream,
      Affine<T>{static_cast<T>(call.attributes.value), static_cast<T>(call.attributes.shift)});
}
template <class T>
void maximum(const GroupCall& call, cudaStream_t stream) {
  map<T, 2>(call, stream, Maximum());
}
template <class T>
void maximum_gradient(const GroupCall& call, cudaStream_t stream) {
  map<T, 3>(call, stream, MaximumGradient());
}
template <class T>
void relu(const GroupCall& call, cudaStream_t stream) {
  map<T, 1>(call, stream, Relu());
}
template <class T>
void relu_gradient(const GroupCall& call, cudaStream_t stream) {
  map<T, 2>(call, stream, ReluGradient());
}
template <class T>
void scale_rows(const GroupCall& call, cudaStream_t stream) {
  const GroupOperand& y = call.outputs[0];
  launch(scale_each_row<T>, shape_for(call, y), stream, y.groups, call.inputs[0].groups,
         call.inputs[1].groups);
}

#define OOC_INSTANTIATE(T)                                           \
  template void add<T>(const GroupCall&, cudaStream_t);              \
  template void sub<T>(const GroupCall&, cudaStream_t);              \
  template void mul<T>(const GroupCall&, cudaStream_t);              \
  template void affine<T>(const GroupCall&, cudaStream_t);           \
  template void maximum<T>(const GroupCall&, cudaStream_t);          \
  template void maximum_gradient<T>(const GroupCall&, cudaStream_t); \
  template void relu<T>(const GroupCall&, cudaStream_t);             \
  template void relu_gradient<T>(const GroupCall&, cudaStream_t);    \
  template void scale_rows<T>(const GroupCall&, cudaStream_t);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cuda
