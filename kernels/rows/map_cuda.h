// Element-wise operators on a GPU: a warp takes a row of a slice, a lane a column.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "kernels/cuda/launch_cuda.h"
#include "kernels/rows/group_view_cuda.h"

namespace ooc::cuda {

template <std::size_t kCount>
struct Views {
  const GroupView* at[kCount];
};

// Calls visit(row, column in the slice) for each element of a slice of `view`; blockIdx.y is the
// slice.
template <class Visit>
__device__ void for_each_element(const GroupView& view, Visit&& visit) {
  constexpr unsigned kRows = kThreads / 32;
  const std::int64_t cols = view.slice_cols(blockIdx.y), rows = view.rows;
  for (std::int64_t row = std::int64_t{blockIdx.x} * kRows + threadIdx.x / 32; row < rows;
       row += std::int64_t{gridDim.x} * kRows) {
    for (std::int64_t col = threadIdx.x % 32; col < cols; col += 32) visit(row, col);
  }
}

// Of a kernel for all groups of a call, with a warp for a row of `operand` in all its slices, or in
// one.
inline LaunchShape shape_for(const GroupCall& call, const GroupOperand& operand,
                             std::int64_t slices) {
  LaunchShape shape = shape_for(operand.rows * 32);
  shape.blocks.y = static_cast<unsigned>(slices);
  shape.blocks.z = static_cast<unsigned>(call.groups);
  return shape;
}
inline LaunchShape shape_for(const GroupCall& call, const GroupOperand& operand) {
  return shape_for(call, operand, operand.slices);
}
// Of one that computes a group in one block.
inline LaunchShape block_a_group(const GroupCall& call) {
  return {dim3(1, 1, static_cast<unsigned>(call.groups)), dim3(kThreads)};
}

template <class T, class Op, std::size_t... kInputs>
__global__ void __launch_bounds__(kThreads, 2)
    map_elements(Op op, const GroupView* y, Views<sizeof...(kInputs)> x,
                 std::index_sequence<kInputs...>) {
  const SliceRows<T> to(y[blockIdx.z], blockIdx.y);
  const SliceRows<const T> from[] = {SliceRows<const T>(x.at[kInputs][blockIdx.z], blockIdx.y)...};
  for_each_element(y[blockIdx.z], [&](std::int64_t row, std::int64_t col) {
    to(row, col) = op(from[kInputs](row, col)...);
  });
}

template <class T, class Op, std::size_t... kInputs>
void launch_each(const GroupCall& call, Op op, const Views<sizeof...(kInputs)>& x,
                 std::index_sequence<kInputs...> indexes, cudaStream_t stream) {
  launch(map_elements<T, Op, kInputs...>, shape_for(call, call.outputs[0]), stream, op,
         call.outputs[0].groups, x, indexes);
}

// y = op(x...), all of the operator's operands of one shape; `op` takes so many T.
template <class T, std::size_t kCount, class Op>
void map(const GroupCall& call, cudaStream_t stream, Op op) {
  Views<kCount> inputs;
  for (std::size_t i = 0; i < kCount; ++i) inputs.at[i] = call.inputs[i].groups;
  launch_each<T>(call, op, inputs, std::make_index_sequence<kCount>(), stream);
}

}  // namespace ooc::cuda
