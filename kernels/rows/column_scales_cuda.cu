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
    map_columns(Op op, MatrixView y, MatrixView x, MatrixView columns) {
  const SliceRows<T> to(y, blockIdx.y);
  const SliceRows<const T> from(x, blockIdx.y), own(columns, 0);
  const std::int64_t first = blockIdx.y * y.slice_width;
  for_each_element(y, [&](std::int64_t row, std::int64_t col) {
    to(row, col) = op(from(row, col), own(0, first + col));
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads, 4)
    scale_all(MatrixView y, MatrixView x, MatrixView factor) {
  const SliceRows<T> to(y, blockIdx.y);
  const SliceRows<const T> from(x, blockIdx.y), by(factor, 0);
  const T value = by(0, 0);
  for_each_element(
      y, [&](std::int64_t row, std::int64_t col) { to(row, col) = value * from(row, col); });
}

// Row after row; blockIdx.x is the slice, a lane a column.
template <class T, bool kTimes>
__global__ void __launch_bounds__(32) sum_columns(MatrixView sums, MatrixView a, MatrixView b) {
  constexpr std::int64_t kAhead = 8;  // rows under way at once
  const std::int64_t lane = threadIdx.x;
  if (lane >= a.slice_cols(blockIdx.x)) return;
  const SliceRows<const T> x(a, blockIdx.x), y(b, blockIdx.x);
  const SliceRows<T> to(sums, 0);
  const std::int64_t col = blockIdx.x * a.slice_width + lane;
  T sum = to(0, col);
  for (std::int64_t first = 0; first < a.rows; first += kAhead) {
    T values[kAhead];
#pragma unroll
    for (std::int64_t i = 0; i < kAhead; ++i) {
      const std::int64_t row = first + i;
      values[i] = row < a.rows ? (kTimes ? x(row, lane) * y(row, lane) : x(row, lane)) : T{0};
    }
#pragma unroll
    for (std::int64_t i = 0; i < kAhead; ++i) {
      if (first + i < a.rows) sum += values[i];
    }
  }
  to(0, col) = sum;
}

// By one block: every thread its rows' elements, slice after slice, then all threads in order.
template <class T>
__global__ void __launch_bounds__(kThreads, 4)
    sum_products(MatrixView total, MatrixView a, MatrixView b) {
  __shared__ ScanMemory<T> scan;
  T sum = 0;
  for (std::int64_t slice = 0; slice < a.slice_count(); ++slice) {
    const SliceRows<const T> x(a, slice), y(b, slice);
    const std::int64_t cols = a.slice_cols(slice);
    for (std::int64_t row = threadIdx.x / 32; row < a.rows; row += kWarps) {
      for (std::int64_t col = threadIdx.x % 32; col < cols; col += 32) {
        sum += x(row, col) * y(row, col);
      }
    }
  }
  block_scan(sum, Sum(), scan);
  if (threadIdx.x == 0) SliceRows<T>(total, 0)(0, 0) += scan.last;
}

template <class T, class Op>
void map_with_columns(const OperatorCall& call, cudaStream_t stream, Op op) {
  const MatrixView& y = call.outputs[0];
  if (y.rows == 0) return;
  launch(map_columns<T, Op>, shape_for(y), stream, op, y, call.inputs[0], call.inputs[1]);
}

template <class T, bool kTimes>
void sum_rows(const OperatorCall& call, cudaStream_t stream) {
  const MatrixView& a = call.inputs[0];
  const MatrixView& b = call.inputs[kTimes ? 1 : 0];
  launch(sum_columns<T, kTimes>, {dim3(static_cast<unsigned>(a.slice_count())), dim3(32)}, stream,
         call.outputs[0], a, b);
}

}  // namespace

template <class T>
void bias(const OperatorCall& call, cudaStream_t stream) {
  map_with_columns<T>(call, stream, Sum());
}
template <class T>
void scale_cols(const OperatorCall& call, cudaStream_t stream) {
  map_with_columns<T>(call, stream, Product());
}
template <class T>
void scale_by(const OperatorCall& call, cudaStream_t stream) {
  const MatrixView& y = call.outputs[0];
  if (y.rows == 0) return;
  launch(scale_all<T>, shape_for(y), stream, y, call.inputs[0], call.inputs[1]);
}
template <class T>
void column_sum(const OperatorCall& call, cudaStream_t stream) {
  sum_rows<T, false>(call, stream);
}
template <class T>
void mul_column_sum(const OperatorCall& call, cudaStream_t stream) {
  sum_rows<T, true>(call, stream);
}
template <class T>
void dot_sum(const OperatorCall& call, cudaStream_t stream) {
  launch(sum_products<T>, {dim3(1), dim3(kThreads)}, stream, call.outputs[0], call.inputs[0],
         call.inputs[1]);
}

#define OOC_INSTANTIATE(T)                                            \
  template void bias<T>(const OperatorCall&, cudaStream_t);           \
  template void scale_cols<T>(const OperatorCall&, cudaStream_t);     \
  template void scale_by<T>(const OperatorCall&, cudaStream_t);       \
  template void column_sum<T>(const OperatorCall&, cudaStream_t);     \
  template void mul_column_sum<T>(const OperatorCall&, cudaStream_t); \
  template void dot_sum<T>(const OperatorCall&, cudaStream_t);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cuda
