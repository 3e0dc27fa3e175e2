// Signs as bits: a warp's lanes are a word's.
#include "kernels/cuda/block_scan_cuda.h"
#include "kernels/rows/cuda_row_kernels.h"
#include "kernels/rows/map_cuda.h"
#include "kernels/spec/row_kernels.h"
#include "storage/format/tensor_layout.h"

namespace ooc::cuda {
namespace {

static_assert(kBitsPerWord == 32 && kSliceWidth == 32, "a slice's row is a warp's, and a word");

// The word of a slice of columns, in row 0 of its own slice.
struct Words {
  SliceRows<std::int32_t> slice;
  std::int64_t col;
  __device__ explicit Words(const MatrixView& bits)
      : slice(bits, blockIdx.y / kSliceWidth), col(blockIdx.y % kSliceWidth) {}
  __device__ std::int32_t& operator()(std::int64_t row) const { return slice(row, col); }
};

template <class T>
__global__ void __launch_bounds__(kThreads, 4) take_signs(MatrixView bits, MatrixView x) {
  constexpr unsigned kRows = kThreads / 32;
  const SliceRows<const T> from(x, blockIdx.y);
  const Words words(bits);
  const std::int64_t lane = threadIdx.x % 32, cols = x.slice_cols(blockIdx.y);
  for (std::int64_t row = std::int64_t{blockIdx.x} * kRows + threadIdx.x / 32; row < x.rows;
       row += std::int64_t{gridDim.x} * kRows) {
    const bool positive = lane < cols && from(row, lane) > T{0};
    const unsigned word = __ballot_sync(kAllLanes, positive);
    if (lane == 0) words(row) = static_cast<std::int32_t>(word);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, 4)
    keep_by_bits(MatrixView y, MatrixView g, MatrixView bits) {
  const SliceRows<T> to(y, blockIdx.y);
  const SliceRows<const T> from(g, blockIdx.y);
  const Words words(bits);
  for_each_element(y, [&](std::int64_t row, std::int64_t col) {
    const auto word = static_cast<std::uint32_t>(words(row));
    to(row, col) = (word >> col & 1) != 0 ? from(row, col) : T{0};
  });
}

}  // namespace

template <class T>
void positive_bits(const OperatorCall& call, cudaStream_t stream) {
  const MatrixView& x = call.inputs[0];
  if (x.rows == 0) return;
  launch(take_signs<T>, shape_for(x), stream, call.outputs[0], x);
}
template <class T>
void keep_bits(const OperatorCall& call, cudaStream_t stream) {
  const MatrixView& y = call.outputs[0];
  if (y.rows == 0) return;
  launch(keep_by_bits<T>, shape_for(y), stream, y, call.inputs[0], call.inputs[1]);
}

#define OOC_INSTANTIATE(T)                                           \
  template void positive_bits<T>(const OperatorCall&, cudaStream_t); \
  template void keep_bits<T>(const OperatorCall&, cudaStream_t);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cuda
