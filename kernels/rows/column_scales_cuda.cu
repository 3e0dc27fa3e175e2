// Factors and sums of columns, and of all elements.
#include "kernels/cuda/block_scan_cuda.h"
#include "kernels/rows/cuda_row_kernels.h"
#include "kernels/rows/map_cuda.h"

namespace ooc::cuda {
namespace {

struct Product {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a * b;
  }
};

// y = op(x, the column's own number); a parameter has one slice.
template <class T, class Op>
__global__ void __launch_bounds__(kThreads, 4)
    map_columns(Op op, const GroupView* y, const GroupView* x, const GroupView* columns) {
  const SliceRows<T> to(y[blockIdx.z], blockIdx.y);
  const SliceRows<const T> from(x[blockIdx.z], blockIdx.y), own(columns[blockIdx.z], 0);
  const std::int64_t first = std::int64_t{blockIdx.y} * y[blockIdx.z].width;
  for_each_element(y[blockIdx.z], [&](std::int64_t row, std::int64_t col) {
    to(row, col) = op(from(row, col), own(0, first + col));
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads, 4)
    scale_all(const GroupView* y, const GroupView* x, const GroupView* factor) {
  const SliceRows<T> to(y[blockIdx.z], blockIdx.y);
  const SliceRows<const T> from(x[blockIdx.z], blockIdx.y), by(factor[blockIdx.z], 0);
  const T value = by(0, 0);
  for_each_element(y[blockIdx.z], [&](std::int64_t row, std::int64_t col) {
    to(row, col) = value * from(row, col);
  });
}

// Row after row; blockIdx.x is the slice, a lane a column.
template <class T, bool kTimes>
__global__ void __launch_bounds__(32)
    sum_columns(const GroupView* sums, const GroupView* a, const GroupView* b) {
  constexpr std::int64_t kAhead = 8;  // rows under way at once
  const std::int64_t lane = threadIdx.x, rows = a[blockIdx.z].rows;
  if (lane >= a[blockIdx.z].slice_cols(blockIdx.x)) return;
  const SliceRows<const T> x(a[blockIdx.z], blockIdx.x), y(b[blockIdx.z], blockIdx.x);
  const SliceRows<T> to(sums[blockIdx.z], 0);
  const std::int64_t col = std::int64_t{blockIdx.x} * a[blockIdx.z].width + lane;
  T sum = to(0, col);
  for (std::int64_t first = 0; first < rows; first += kAhead) {
    T values[kAhead];
#pragma unroll
    for (std::int64_t i = 0; i < kAhead; ++i) {
      const std::int64_t row = first + i;
      values[i] = row < rows ? (kTimes ? x(row, lane) * y(row, lane) : x(row, lane)) : T{0};
    }
#pragma unroll
    for (std::int64_t i = 0; i < kAhead; ++i) {
      if (first + i < rows) sum += values[i];
    }
  }
  to(0, col) = sum;
}

// By one block: every thread its rows' elements, slice after slice, then all threads in order.
template <class T>
__global__ void __launch_bounds__(kThreads, 4)
    sum_products(const GroupView* total, const GroupView* a, const GroupView* b) {
  __shared__ ScanMemory<T> scan;
  T sum = 0;
  const GroupView& view = a[blockIdx.z];
  for (std::int32_t slice = 0; slice < view.slices; ++slice) {
    const SliceRows<const T> x(view, slice), y(b[blockIdx.z], slice);
    const std::int64_t cols = view.slice_cols(slice);
    for (std::int64_t row = threadIdx.x / 32; row < view.rows; row += kWarps) {
      for (std::int64_t col = threadIdx.x % 32; col < cols; col += 32) {
        sum += x(row, col) * y(row, col);
      }
    }
  }
  block_scan(sum, Sum(), scan);
  if (threadIdx.x == 0) SliceRows<T>(total[blockIdx.z], 0)(0, 0) += scan.last;
}

template <class T, class Op>
void map_with_columns(const GroupCall& call, cudaStream_t stream, Op op) {
  const GroupOperand& y = call.outputs[0];
  launch(map_columns<T, Op>, shape_for(call, y), stream, op, y.groups, call.inputs[0].groups,
         call.inputs[1].groups);
}

template <class T, bool kTimes>
void sum_rows(const GroupCall& call, cudaStream_t stream) {
  const GroupOperand& a = call.inputs[0];
  const dim3 blocks(static_cast<unsigned>(a.slices), 1, static_cast<unsigned>(call.groups));
  launch(sum_columns<T, kTimes>, {blocks, dim3(32)}, stream, call.outputs[0].groups, a.groups,
         call.inputs[kTimes ? 1 : 0].groups);
}

}  // namespace

template <class T>
void bias(const GroupCall& call, cudaStream_t stream) {
  map_with_columns<T>(call, stream, Sum());
}
template <class T>
void scale_cols(const GroupCall& call, cudaStream_t stream) {
  map_with_columns<T>(call, stream, Product());
}
template <class T>
void scale_by(const GroupCall& call, cudaStream_t stream) {
  const GroupOperand& y = call.outputs[0];
  launch(scale_all<T>, shape_for(call, y), stream, y.groups, call.inputs[0].groups,
         call.inputs[1].groups);
}
template <class T>
void column_sum(const GroupCall& call, cudaStream_t stream) {
  sum_rows<T, false>(call, stream);
}
template <class T>
void mul_column_sum(const GroupCall& call, cudaStream_t stream) {
  sum_rows<T, true>(call, stream);
}
template <class T>
void dot_sum(const GroupCall& call, cudaStream_t stream) {
  launch(sum_products<T>, block_a_group(call), stream, call.outputs[0].groups,
         call.inputs[0].groups, call.inputs[1].groups);
}

#define OOC_INSTANTIATE(T)                                         \
  template void bias<T>(const GroupCall&, cudaStream_t);           \
  template void scale_cols<T>(const GroupCall&, cudaStream_t);     \
  template void scale_by<T>(const GroupCall&, cudaStream_t);       \
  template void column_sum<T>(const GroupCall&, cudaStream_t);     \
  template void mul_column_sum<T>(const GroupCall&, cudaStream_t); \
  template void dot_sum<T>(const GroupCall&, cudaStream_t);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cuda
