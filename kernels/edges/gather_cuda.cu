#include "kernels/edges/gather_cuda.h"

#include "kernels/cuda/block_scan_cuda.h"
#include "kernels/cuda/launch_cuda.h"
#include "kernels/cuda/shared_cuda.h"
#include "kernels/spec/compute_shape.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc::cuda {
namespace {

// Eight lanes own a row of a slice, and each has its parts of the rows of the next edges under way
// at once: 128 bytes.
constexpr int kLanes = 8;
template <class T>
constexpr int kEdgesAhead = 32 / sizeof(T);
constexpr int kRowsOfBlock = kThreads / kLanes;

__device__ inline void load16(const float* from, float* to) {
  const float4 at = *reinterpret_cast<const float4*>(from);
  to[0] = at.x, to[1] = at.y, to[2] = at.z, to[3] = at.w;
}
__device__ inline void load16(const double* from, double* to) {
  const double2 at = *reinterpret_cast<const double2*>(from);
  to[0] = at.x, to[1] = at.y;
}
__device__ inline void store16(float* to, const float* from) {
  *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
}
__device__ inline void store16(double* to, const double* from) {
  *reinterpret_cast<double2*>(to) = make_double2(from[0], from[1]);
}

// What a lane has of a row: elements beside each other, in loads of 16 bytes where there are more
// than one.
template <class T, int kCount>
struct Part {
  T at[kCount];

  __device__ static Part load(const T* from) {
    Part part;
    if constexpr (kCount == 1) {
      part.at[0] = __ldg(from);
    } else {
#pragma unroll
      for (int i = 0; i < kCount; i += 16 / static_cast<int>(sizeof(T)))
        load16(from + i, part.at + i);
    }
    return part;
  }
  __device__ void store(T* to) const {
    if constexpr (kCount == 1) {
      *to = at[0];
    } else {
#pragma unroll
      for (int i = 0; i < kCount; i += 16 / static_cast<int>(sizeof(T))) store16(to + i, at + i);
    }
  }
};

__device__ inline float product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double product(double a, double b) { return __dmul_rn(a, b); }

// blockIdx.y: the slice.
template <class T, bool kWeighted, int kCount>
__global__ void __launch_bounds__(kThreads, 3) gather(GatherSum sum) {
  auto** const sources = reinterpret_cast<const T**>(shared_bytes);  // by span
  for (std::int64_t i = threadIdx.x; i < sum.span_count; i += kThreads) {
    sources[i] = static_cast<const T*>(sum.sources[blockIdx.y * sum.span_count + i]);
  }
  __syncthreads();
  const int lane = threadIdx.x % kLanes;
  const std::int64_t row = std::int64_t{blockIdx.x} * kRowsOfBlock + threadIdx.x / kLanes;
  const auto block = static_cast<std::uint32_t>(row) / static_cast<std::uint32_t>(sum.block_rows);
  if (row >= sum.rows) return;  // all lanes of the row
  const std::uint32_t begin = sum.index.row_ptr[row], end = sum.index.row_ptr[row + 1];
  if (begin == end && !sum.begins) return;
  const bool owns = lane * kCount < sum.stride;
  const std::int64_t offset = owns ? lane * kCount : 0;
  T* const to = static_cast<T*>(sum.accumulators[blockIdx.y * sum.block_count + block]) +
                (row - std::int64_t{block} * sum.block_rows) * sum.stride + offset;
  Part<T, kCount> total{};
  if (owns && !sum.begins) total = Part<T, kCount>::load(to);
  // Of edges after the last one it is again: loads ask for nothing, so that none waits for another.
  const std::uint32_t* const neighbours = sum.index.neighbours;
  std::uint32_t next[kEdgesAhead<T>];
  const auto read_ahead = [&](std::uint32_t first) {
#pragma unroll
    for (int e = 0; e < kEdgesAhead<T>; ++e) next[e] = __ldg(neighbours + min(first + e, end - 1));
  };
  if (begin < end) read_ahead(begin);
  for (std::uint32_t first = begin; first < end; first += kEdgesAhead<T>) {
    Part<T, kCount> rows[kEdgesAhead<T>];
#pragma unroll
    for (int e = 0; e < kEdgesAhead<T>; ++e) {
      rows[e] =
          Part<T, kCount>::load(sources[next[e] >> 16] + (next[e] & 0xffffu) * sum.stride + offset);
    }
    float weights[kEdgesAhead<T>];
#pragma unroll
    for (int e = 0; kWeighted && e < kEdgesAhead<T>; ++e) {
      weights[e] = __ldg(sum.index.weights + min(first + e, end - 1));
    }
    read_ahead(min(first + kEdgesAhead<T>, end - 1));
    const std::uint32_t left = end - first;
#pragma unroll
    for (int e = 0; e < kEdgesAhead<T>; ++e) {
      if (e >= left) continue;
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        total.at[i] +=
            kWeighted ? product(static_cast<T>(weights[e]), rows[e].at[i]) : rows[e].at[i];
      }
    }
  }
  if (owns) total.store(to);
}

template <class T, int kCount>
void launch_gather(const GatherSum& sum, cudaStream_t stream) {
  const LaunchShape shape{dim3(static_cast<unsigned>((sum.rows + kRowsOfBlock - 1) / kRowsOfBlock),
                               static_cast<unsigned>(sum.slice_count)),
                          dim3(kThreads), static_cast<std::size_t>(sum.span_count) * sizeof(void*)};
  if (sum.index.weights != nullptr) {
    launch(gather<T, true, kCount>, shape, stream, sum);
  } else {
    launch(gather<T, false, kCount>, shape, stream, sum);
  }
}

// Rows of fewer than eight elements aren't multiples of 16 bytes: a lane has one element of them.
template <class T>
void gather_rows(const GatherSum& sum, cudaStream_t stream) {
  if (sum.stride < kLanes) return launch_gather<T, 1>(sum, stream);
  launch_gather<T, kSliceWidth / kLanes>(sum, stream);
}

}  // namespace

void gather_sum(const GatherSum& sum, cudaStream_t stream) {
  OOC_CHECK(sum.dtype == DType::kF32 || sum.dtype == DType::kF64);
  OOC_CHECK(sum.span_count <= kMostIndexedSpans && sum.slice_count < 65536);
  OOC_CHECK(sum.stride < 8 || (sum.stride % 8 == 0 && sum.stride <= kSliceWidth));
  OOC_CHECK(sum.rows <= sum.block_rows * sum.block_count && sum.rows < std::int64_t{1} << 31);
  if (sum.dtype == DType::kF32) {
    gather_rows<float>(sum, stream);
  } else {
    gather_rows<double>(sum, stream);
  }
}

}  // namespace ooc::cuda
