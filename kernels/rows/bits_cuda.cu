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
  __device__ explicit Words(const GroupView& bits)
      : slice(bits, blockIdx.y / kSliceWidth), col(blockIdx.y % kSliceWidth) {}
  __device__ std::int32_t& operator()(std::int64_t row) const { return slice(row, col); }
};

template <class T>
__global__ void __launch_bounds__(kThreads, 4)
    take_signs(const GroupView* bits, const GroupView* x) {
  constexpr unsigned kRows = kThreads / 32;
  const GroupView& view = x[blockIdx.z];
  const SliceRows<const T> from(view, blockIdx.y);
  const Words words(bits[blockIdx.z]);
  const std::int64_t lane = threadIdx.x % 32, cols = view.slice_cols(blockIdx.y);
  for (std::int64_t row = std::int64_t{blockIdx.x} * kRows + threadIdx.x / 32; row < view.rows;
       row += std::int64_t{gridDim.x} * kRows) {
    const bool positive = lane < cols && from(row, lane) > T{0};
    const unsigned word = __ballot_sync(kAllLanes, positive);
    if (lane == 0) words(row) = static_cast<std::int32_t>(word);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, 4)
    keep_by_bits(const GroupView* y, const GroupView* g, const GroupView* bits) {
  const SliceRows<T> to(y[blockIdx.z], blockIdx.y);
  const SliceRows<const T> from(g[blockIdx.z], blockIdx.y);
  const Words words(bits[blockIdx.z]);
  for_each_element(y[blockIdx.z], [&](std::int64_t row, std::int64_t col) {
    const auto word = static_cast<std::uint32_t>(words(row));
    to(row, col) = (word >> col & 1) != 0 ? from(row, col) : T{0};
  });
}

}  // namespace

template <class T>
void positive_bits(const GroupCall& call, cudaStream_t stream) {
  const GroupOperand& x = call.inputs[0];
  launch(take_signs<T>, shape_for(call, x), stream, call.outputs[0].groups, x.groups);
}
template <class T>
void keep_bits(const GroupCall& call, cudaStream_t stream) {
  const GroupOperand& y = call.outputs[0];
  launch(keep_by_bits<T>, shape_for(call, y), stream, y.groups, call.inputs[0].groups,
         call.inputs[1].groups);
}

#define OOC_INSTANTIATE(T)                                        \
  template void positive_bits<T>(const GroupCall&, cudaStream_t); \
  template void keep_bits<T>(const GroupCall&, cudaStream_t);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cuda
