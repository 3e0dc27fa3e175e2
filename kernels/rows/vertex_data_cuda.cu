// Columns computed from what a dataset keeps of its vertices, and from sums over their edges. A
// thread takes a row.
#include "kernels/cuda/block_scan_cuda.h"
#include "kernels/rows/cuda_row_kernels.h"
#include "kernels/rows/group_view_cuda.h"
#include "kernels/rows/map_cuda.h"
#include "kernels/spec/degree_factor.h"

namespace ooc::cuda {
namespace {

// The columns of degrees (storage/dataset/dataset.h), and the byte of a missing label
// (storage/format/manifest.h).
constexpr std::int64_t kIn = 0, kOut = 1, kLoops = 2;
constexpr std::uint8_t kNoLabel = 255;

template <class T>
struct FactorOfDegrees {
  Elements<const std::int32_t> degrees;
  DegreeFactor factor;
  __device__ FactorOfDegrees(const GroupView& x, int which)
      : degrees(x), factor(static_cast<DegreeFactor>(which)) {}
  __device__ T operator()(std::int64_t row) const {
    return static_cast<T>(degree_factor_of(factor, degrees.at(row, kIn), degrees.at(row, kOut),
                                           degrees.at(row, kLoops)));
  }
};
template <class T>
struct InverseOfSum {
  Elements<const double> sums;
  __device__ InverseOfSum(const GroupView& x, int) : sums(x) {}
  __device__ T operator()(std::int64_t row) const {
    const double sum = sums.at(row, 0);
    return static_cast<T>(sum != 0 ? 1 / sum : 0.0);
  }
};
template <class T>
struct InverseRootOfSum {
  Elements<const double> sums;
  __device__ InverseRootOfSum(const GroupView& x, int) : sums(x) {}
  __device__ T operator()(std::int64_t row) const {
    const double sum = sums.at(row, 0);
    return static_cast<T>(sum > 0 ? 1 / sqrt(sum) : 0.0);
  }
};
struct BitOfLabel {
  Elements<const std::int32_t> labels;
  __device__ BitOfLabel(const GroupView& x, int) : labels(x) {}
  __device__ std::uint8_t operator()(std::int64_t row) const {
    const std::int32_t label = labels.at(row, 0);
    return label < 0 ? kNoLabel : static_cast<std::uint8_t>(label);
  }
};

template <class T, class From>
__global__ void __launch_bounds__(kThreads, 4)
    write_column(const GroupView* to, const GroupView* x, int which) {
  const Elements<T> y(to[blockIdx.z]);
  const From from(x[blockIdx.z], which);
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; row < y.rows;
       row += stride) {
    y.at(row, 0) = from(row);
  }
}

template <class T, class From>
void write(const GroupCall& call, cudaStream_t stream, int which = 0) {
  LaunchShape shape = shape_for(call.outputs[0].rows);
  shape.blocks.z = static_cast<unsigned>(call.groups);
  launch(write_column<T, From>, shape, stream, call.outputs[0].groups, call.inputs[0].groups,
         which);
}

// By one block.
template <class T>
__global__ void __launch_bounds__(kThreads, 4)
    add_zeros(const GroupView* total, const GroupView* of) {
  const GroupView& x = of[blockIdx.z];
  __shared__ ScanMemory<std::uint32_t> scan;
  std::uint32_t zeros = 0;
  for (std::int32_t slice = 0; slice < x.slices; ++slice) {
    const SliceRows<const T> from(x, slice);
    const std::int64_t cols = x.slice_cols(slice);
    for (std::int64_t row = threadIdx.x / 32; row < x.rows; row += kWarps) {
      for (std::int64_t col = threadIdx.x % 32; col < cols; col += 32) {
        zeros += from(row, col) == T{0} ? 1 : 0;
      }
    }
  }
  block_scan(zeros, Sum(), scan);
  if (threadIdx.x == 0) SliceRows<double>(total[blockIdx.z], 0)(0, 0) += scan.last;
}

}  // namespace

template <class T>
void degree_factor(const GroupCall& call, cudaStream_t stream) {
  write<T, FactorOfDegrees<T>>(call, stream, static_cast<int>(call.attributes.value));
}
template <class T>
void inverse(const GroupCall& call, cudaStream_t stream) {
  write<T, InverseOfSum<T>>(call, stream);
}
template <class T>
void inverse_sqrt(const GroupCall& call, cudaStream_t stream) {
  write<T, InverseRootOfSum<T>>(call, stream);
}
template <class T>
void binary_label(const GroupCall& call, cudaStream_t stream) {
  write<std::uint8_t, BitOfLabel>(call, stream);
}
template <class T>
void count_zeros(const GroupCall& call, cudaStream_t stream) {
  launch(add_zeros<T>, block_a_group(call), stream, call.outputs[0].groups, call.inputs[0].groups);
}

#define OOC_INSTANTIATE(T)                                        \
  template void degree_factor<T>(const GroupCall&, cudaStream_t); \
  template void inverse<T>(const GroupCall&, cudaStream_t);       \
  template void inverse_sqrt<T>(const GroupCall&, cudaStream_t);  \
  template void binary_label<T>(const GroupCall&, cudaStream_t);  \
  template void count_zeros<T>(const GroupCall&, cudaStream_t);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cuda
