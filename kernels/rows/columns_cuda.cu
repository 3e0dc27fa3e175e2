// Operators that move ranges of columns: each element of the output says where it is from.
#include "kernels/rows/cuda_row_kernels.h"
#include "kernels/rows/group_view_cuda.h"
#include "kernels/rows/map_cuda.h"

namespace ooc::cuda {
namespace {

// Where an output's elements are from: constructed by a thread, of its group.
template <class T>
struct Both {
  Elements<const T> a, b;
  __device__ Both(const Views<2>& x, std::int64_t)
      : a(x.at[0][blockIdx.z]), b(x.at[1][blockIdx.z]) {}
  __device__ T operator()(std::int64_t row, std::int64_t col) const {
    return col < a.cols ? a.at(row, col) : b.at(row, col - a.cols);
  }
};
template <class T>
struct Range {
  Elements<const T> x;
  std::int64_t begin;
  __device__ Range(const Views<1>& of, std::int64_t at) : x(of.at[0][blockIdx.z]), begin(at) {}
  __device__ T operator()(std::int64_t row, std::int64_t col) const {
    return x.at(row, begin + col);
  }
};
template <class T>
struct Placed {
  Elements<const T> g;
  std::int64_t begin;
  __device__ Placed(const Views<1>& of, std::int64_t at) : g(of.at[0][blockIdx.z]), begin(at) {}
  __device__ T operator()(std::int64_t row, std::int64_t col) const {
    const std::int64_t from = col - begin;
    return from >= 0 && from < g.cols ? g.at(row, from) : T{0};
  }
};
template <class T>
struct PickedByType {
  Elements<const T> x;
  Elements<const std::int32_t> types;
  std::int64_t cols;
  __device__ PickedByType(const Views<2>& of, std::int64_t count)
      : x(of.at[0][blockIdx.z]), types(of.at[1][blockIdx.z]), cols(count) {}
  __device__ T operator()(std::int64_t row, std::int64_t col) const {
    return x.at(row, types.at(row, 0) * cols + col);
  }
};
template <class T>
struct PlacedByType {
  Elements<const T> g;
  Elements<const std::int32_t> types;
  __device__ PlacedByType(const Views<2>& of, std::int64_t)
      : g(of.at[0][blockIdx.z]), types(of.at[1][blockIdx.z]) {}
  __device__ T operator()(std::int64_t row, std::int64_t col) const {
    const std::int64_t from = col - types.at(row, 0) * g.cols;
    return from >= 0 && from < g.cols ? g.at(row, from) : T{0};
  }
};

template <class T, class From, std::size_t kInputs>
__global__ void __launch_bounds__(kThreads, 4)
    write_elements(const GroupView* y, Views<kInputs> inputs, std::int64_t number) {
  const From from(inputs, number);
  const SliceRows<T> to(y[blockIdx.z], blockIdx.y);
  const std::int64_t first = std::int64_t{blockIdx.y} * y[blockIdx.z].width;
  for_each_element(y[blockIdx.z], [&](std::int64_t row, std::int64_t col) {
    to(row, col) = from(row, first + col);
  });
}

template <class T, class From, std::size_t kInputs>
void write(const GroupCall& call, cudaStream_t stream, std::int64_t number = 0) {
  Views<kInputs> inputs;
  for (std::size_t i = 0; i < kInputs; ++i) inputs.at[i] = call.inputs[i].groups;
  const GroupOperand& y = call.outputs[0];
  launch(write_elements<T, From, kInputs>, shape_for(call, y), stream, y.groups, inputs, number);
}

}  // namespace

template <class T>
void copy(const GroupCall& call, cudaStream_t stream) {
  write<T, Range<T>, 1>(call, stream);
}
template <class T>
void concat(const GroupCall& call, cudaStream_t stream) {
  write<T, Both<T>, 2>(call, stream);
}
template <class T>
void columns(const GroupCall& call, cudaStream_t stream) {
  write<T, Range<T>, 1>(call, stream, call.attributes.begin);
}
template <class T>
void place_columns(const GroupCall& call, cudaStream_t stream) {
  write<T, Placed<T>, 1>(call, stream, call.attributes.begin);
}
template <class T>
void pick_type(const GroupCall& call, cudaStream_t stream) {
  write<T, PickedByType<T>, 2>(call, stream, call.outputs[0].cols);
}
template <class T>
void place_type(const GroupCall& call, cudaStream_t stream) {
  write<T, PlacedByType<T>, 2>(call, stream);
}

#define OOC_INSTANTIATE(T)                                        \
  template void copy<T>(const GroupCall&, cudaStream_t);          \
  template void concat<T>(const GroupCall&, cudaStream_t);        \
  template void columns<T>(const GroupCall&, cudaStream_t);       \
  template void place_columns<T>(const GroupCall&, cudaStream_t); \
  template void pick_type<T>(const GroupCall&, cudaStream_t);     \
  template void place_type<T>(const GroupCall&, cudaStream_t);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cuda
