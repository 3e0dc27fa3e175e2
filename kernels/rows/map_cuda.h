// Element-wise operators on a GPU: a warp takes a row of a slice, a lane a column.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "kernels/cuda/launch_cuda.h"
#include "kernels/spec/operator.h"

namespace ooc::cuda {

template <std::size_t kCount>
struct Views {
  MatrixView at[kCount];
};

// What a lane has of an operand's slice.
template <class T>
struct SliceRows {
  T* first;
  std::int64_t stride;

  __device__ SliceRows(const MatrixView& view, std::int64_t slice)
      : first(view.data<T>(slice)), stride(view.stride(slice)) {}
  __device__ T& operator()(std::int64_t row, std::int64_t col) const {
    return first[row * stride + col];
  }
};

// Calls visit(row, column in the slice) for each element of a slice of `view`; blockIdx.y is the
// slice.
template <class Visit>
__device__ void for_each_element(const MatrixView& view, Visit&& visit) {
  constexpr unsigned kRows = kThreads / 32;
  const std::int64_t cols = view.slice_cols(blockIdx.y);
  for (std::int64_t row = std::int64_t{blockIdx.x} * kRows + threadIdx.x / 32; row < view.rows;
       row += std::int64_t{gridDim.x} * kRows) {
    for (std::int64_t col = threadIdx.x % 32; col < cols; col += 32) visit(row, col);
  }
}
inline LaunchShape shape_for(const MatrixView& view) {
  LaunchShape shape = shape_for(view.rows * 32);
  shape.blocks.y = static_cast<unsigned>(view.slice_count());
  return shape;
}

template <class T, class Op, std::size_t... kInputs>
__global__ void __launch_bounds__(kThreads, 2)
    map_elements(Op op, MatrixView y, Views<sizeof...(kInputs)> x,
                 std::index_sequence<kInputs...>) {
  const SliceRows<T> to(y, blockIdx.y);
  const SliceRows<const T> from[] = {SliceRows<const T>(x.at[kInputs], blockIdx.y)...};
  for_each_element(y, [&](std::int64_t row, std::int64_t col) {
    to(row, col) = op(from[kInputs](row, col)...);
  });
}

template <class T, class Op, std::size_t... kInputs>
void launch_each(Op op, const MatrixView& y, const Views<sizeof...(kInputs)>& x,
                 std::index_sequence<kInputs...> indexes, cudaStream_t stream) {
  launch(map_elements<T, Op, kInputs...>, shape_for(y), stream, op, y, x, indexes);
}

// y = op(x...), all of the operator's operands of one shape; `op` takes so many T.
template <class T, std::size_t kCount, class Op>
void map(const OperatorCall& call, cudaStream_t stream, Op op) {
  if (call.outputs[0].rows == 0) return;
  Views<kCount> inputs;
  for (std::size_t i = 0; i < kCount; ++i) inputs.at[i] = call.inputs[i];
  const auto indexes = std::make_index_sequence<kCount>();
  launch_each<T>(op, call.outputs[0], inputs, indexes, stream);
}

}  // namespace ooc::cuda
