// Cross-entropy over classes: a warp takes a row.
#include "kernels/cuda/block_scan_cuda.h"
#include "kernels/cuda/launch_cuda.h"
#include "kernels/rows/cuda_row_kernels.h"
#include "kernels/rows/map_cuda.h"
#include "kernels/spec/element_math.h"
#include "storage/base/errors.h"

namespace ooc::cuda {
namespace {

constexpr std::uint8_t kTrain = 1;
constexpr int kSplits = 3, kMostColumns = 4;  // of the sums

struct LabelledRows {
  const GroupView *logits, *labels, *splits, *weights;  // weights: null where there are none

  explicit LabelledRows(const GroupCall& call)
      : logits(call.inputs[0].groups),
        labels(call.inputs[1].groups),
        splits(call.inputs[2].groups),
        weights(call.inputs.size() > 3 ? call.inputs[3].groups : nullptr) {}
};

// Those of a thread's group.
struct Labelled {
  const GroupView &logits, &labels, &splits;
  const GroupView* weights;

  __device__ explicit Labelled(const LabelledRows& rows)
      : logits(rows.logits[blockIdx.z]),
        labels(rows.labels[blockIdx.z]),
        splits(rows.splits[blockIdx.z]),
        weights(rows.weights == nullptr ? nullptr : rows.weights + blockIdx.z) {}
  __device__ std::uint8_t split(std::int64_t row) const {
    return SliceRows<const std::uint8_t>(splits, 0)(row, 0);
  }
  // Of a row that counts in its split, otherwise -1.
  __device__ std::int64_t label(std::int64_t row) const {
    return split(row) == 0 ? -1 : SliceRows<const std::int32_t>(labels, 0)(row, 0);
  }
  template <class T>
  __device__ double weight(std::int64_t label) const {
    return weights == nullptr ? 1.0
                              : static_cast<double>(SliceRows<const T>(*weights, 0)(0, label));
  }
};

template <class T>
struct RowSoftmax {
  T largest;                // logit
  double sum;               // of exp(logit - largest)
  T own;                    // the label's logit
  std::int64_t first_best;  // the lowest column of the largest logit
};

// All lanes of a warp get it.
template <class T>
__device__ RowSoftmax<T> row_softmax(const GroupView& logits, std::int64_t row,
                                     std::int64_t label) {
  const std::int64_t lane = threadIdx.x % 32;
  const std::int32_t slices = logits.slices;
  T largest = -static_cast<T>(INFINITY), own = 0;
  std::int64_t best = logits.cols;
  for (std::int32_t slice = 0; slice < slices; ++slice) {
    if (lane >= logits.slice_cols(slice)) continue;
    const T x = SliceRows<const T>(logits, slice)(row, lane);
    const std::int64_t col = std::int64_t{slice} * logits.width + lane;
    if (col == label) own = x;
    if (!(x > largest)) continue;  // the first of equals stays
    largest = x;
    best = col;
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    const T other = __shfl_xor_sync(kAllLanes, largest, distance);
    const auto other_best =
        static_cast<std::int64_t>(__shfl_xor_sync(kAllLanes, static_cast<int>(best), distance));
    if (other > largest || (other == largest && other_best < best)) best = other_best;
    largest = other > largest ? other : largest;
  }
  double sum = 0;
  for (std::int32_t slice = 0; slice < slices; ++slice) {
    if (lane >= logits.slice_cols(slice)) continue;
    const T x = SliceRows<const T>(logits, slice)(row, lane);
    sum += static_cast<double>(exp_nonpositive(x - largest));
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  }
  const int owner = static_cast<int>(label < 0 ? 0 : label % logits.width);
  return {largest, sum, __shfl_sync(kAllLanes, own, owner), best};
}

// By one block: warps take rows in turn, and their sums are added in order.
template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    add_losses(LabelledRows rows, const GroupView* to_sums) {
  const Labelled on(rows);
  const GroupView& sums = to_sums[blockIdx.z];
  __shared__ double of_warps[kWarps][kSplits * kMostColumns];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane < kSplits * kMostColumns) of_warps[warp][lane] = 0;
  __syncwarp();
  for (std::int64_t row = warp; row < on.logits.rows; row += kWarps) {
    const std::int64_t label = on.label(row);
    if (label < 0) continue;
    const RowSoftmax<T> softmax = row_softmax<T>(on.logits, row, label);
    if (lane != 0) continue;
    const double weight = on.weight<T>(label);
    double* const to = of_warps[warp] + (on.split(row) - 1) * kMostColumns;
    to[0] += weight * (log(softmax.sum) +
                       (static_cast<double>(softmax.largest) - static_cast<double>(softmax.own)));
    to[1] += softmax.first_best == label ? 1 : 0;
    to[2] += 1;
    to[3] += weight;
  }
  __syncthreads();
  if (threadIdx.x >= kSplits * sums.cols) return;
  const std::int64_t split = threadIdx.x / sums.cols, col = threadIdx.x % sums.cols;
  double sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += of_warps[w][split * kMostColumns + col];
  SliceRows<double>(sums, 0)(split, col) += sum;
}

template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    write_gradients(LabelledRows rows, const GroupView* to, double count) {
  const Labelled on(rows);
  const GroupView& dx = to[blockIdx.z];
  const std::int64_t lane = threadIdx.x % 32;
  for (std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
       row < on.logits.rows; row += std::int64_t{gridDim.x} * kWarps) {
    const std::int64_t label = on.split(row) == kTrain ? on.label(row) : -1;
    RowSoftmax<T> softmax{};
    if (label >= 0) softmax = row_softmax<T>(on.logits, row, label);
    const double weight = label >= 0 ? on.weight<T>(label) / count : 0;
    const T scale = label >= 0 ? static_cast<T>(weight / softmax.sum) : T{0};
    for (std::int32_t slice = 0; slice < dx.slices; ++slice) {
      if (lane >= dx.slice_cols(slice)) continue;
      T gradient = 0;
      if (label >= 0) {
        const T x = SliceRows<const T>(on.logits, slice)(row, lane);
        gradient = exp_nonpositive(x - softmax.largest) * scale;
        if (std::int64_t{slice} * dx.width + lane == label) gradient -= static_cast<T>(weight);
      }
      SliceRows<T>(dx, slice)(row, lane) = gradient;
    }
  }
}

template <class T>
void launch_losses(const GroupCall& call, cudaStream_t stream) {
  OOC_CHECK(call.outputs[0].cols <= kMostColumns);
  launch(add_losses<T>, block_a_group(call), stream, LabelledRows(call), call.outputs[0].groups);
}

template <class T>
void launch_gradients(const GroupCall& call, cudaStream_t stream) {
  OOC_CHECK(call.attributes.count > 0);
  const GroupOperand& dx = call.outputs[0];
  launch(write_gradients<T>, shape_for(call, dx, 1), stream, LabelledRows(call), dx.groups,
         call.attributes.count);
}

}  // namespace

template <class T>
void softmax_cross_entropy(const GroupCall& call, cudaStream_t stream) {
  launch_losses<T>(call, stream);
}
template <class T>
void softmax_cross_entropy_gradient(const GroupCall& call, cudaStream_t stream) {
  launch_gradients<T>(call, stream);
}
template <class T>
void softmax_cross_entropy_weighted(const GroupCall& call, cudaStream_t stream) {
  launch_losses<T>(call, stream);
}
template <class T>
void softmax_cross_entropy_weighted_gradient(const GroupCall& call, cudaStream_t stream) {
  launch_gradients<T>(call, stream);
}

#define OOC_INSTANTIATE(T)                                                         \
  template void softmax_cross_entropy<T>(const GroupCall&, cudaStream_t);          \
  template void softmax_cross_entropy_gradient<T>(const GroupCall&, cudaStream_t); \
  template void softmax_cross_entropy_weighted<T>(const GroupCall&, cudaStream_t); \
  template void softmax_cross_entropy_weighted_gradient<T>(const GroupCall&, cudaStream_t);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cuda
