// Operators that move ranges of columns: each element of the output says where it is from.
#include "kernels/rows/cuda_row_kernels.h"
#include "kernels/rows/elements_cuda.h"
#include "kernels/rows/map_cuda.h"

namespace ooc::cuda {
namespace {

template <class T>
struct Both {
  Elements<const T> a, b;
  __device__ T operator()(std::int64_t row, std::int64_t col) const {
    return col < a.cols ? a.at(row, col) : b.at(row, col - a.cols);
  }
};
template <class T>
struct Range {
  Elements<const T> x;
  std::int64_t begin;
  __device__ T operator()(std::int64_t row, std::int64_t col) const {
    return x.at(row, begin + col);
  }
};
template <class T>
struct Placed {
  Elements<const T> g;
  std::int64_t begin;
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
  __device__ T operator()(std::int64_t row, std::int64_t col) const {
    return x.at(row, types.at(row, 0) * cols + col);
  }
};
template <class T>
struct PlacedByType {
  Elements<const T> g;
  Elements<const std::int32_t> types;
  __device__ T operator()(std::int64_t row, std::int64_t col) const {
    const std::int64_t from = col - types.at(row, 0) * g.cols;
    return from >= 0 && from < g.cols ? g.at(row, from) : T{0};
  }
};
template <class T>
struct Same {
  Elements<const T> x;
  __device__ T operator()(std::int64_t row, std::int64_t col) const { return x.at(row, col); }
};

template <class T, class From>
__global__ void __launch_bounds__(kThreads, 4) write_elements(MatrixView y, From from) {
  const SliceRows<T> to(y, blockIdx.y);
  const std::int64_t first = blockIdx.y * y.slice_width;
  for_each_element(
      y, [&](std::int64_t row, std::int64_t col) { to(row, col) = from(row, first + col); });
}

template <class T, class From>
void write(const OperatorCall& call, cudaStream_t stream, const From& from) {
  const MatrixView& y = call.outputs[0];
  if (y.rows > 0) launch(write_elements<T, From>, shape_for(y), stream, y, from);
}

template <class T>
Elements<const T> input(const OperatorCall& call, std::size_t at) {
  return Elements<const T>(call.inputs[at]);
}

}  // namespace

template <class T>
void copy(const OperatorCall& call, cudaStream_t stream) {
  write<T>(call, stream, Same<T>{input<T>(call, 0)});
}
template <class T>
void concat(const OperatorCall& call, cudaStream_t stream) {
  write<T>(call, stream, Both<T>{input<T>(call, 0), input<T>(call, 1)});
}
template <class T>
void columns(const OperatorCall& call, cudaStream_t stream) {
  write<T>(call, stream, Range<T>{input<T>(call, 0), call.attributes.begin});
}
template <class T>
void place_columns(const OperatorCall& call, cudaStream_t stream) {
  write<T>(call, stream, Placed<T>{input<T>(call, 0), call.attributes.begin});
}
template <class T>
void pick_type(const OperatorCall& call, cudaStream_t stream) {
  write<T>(call, stream,
           PickedByType<T>{input<T>(call, 0), input<std::int32_t>(call, 1), call.outputs[0].cols});
}
template <class T>
void place_type(const OperatorCall& call, cudaStream_t stream) {
  write<T>(call, stream, PlacedByType<T>{input<T>(call, 0), input<std::int32_t>(call, 1)});
}

#define OOC_INSTANTIATE(T)                                           \
  template void copy<T>(const OperatorCall&, cudaStream_t);          \
  template void concat<T>(const OperatorCall&, cudaStream_t);        \
  template void columns<T>(const OperatorCall&, cudaStream_t);       \
  template void place_columns<T>(const OperatorCall&, cudaStream_t); \
  template void pick_type<T>(const OperatorCall&, cudaStream_t);     \
  template void place_type<T>(const OperatorCall&, cudaStream_t);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cuda
