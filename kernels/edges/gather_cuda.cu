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
constexpr std::uint32_t kRowsOfBlock = kThreads / kLanes;

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
      part.at[0] = *from;
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
  __device__ void copy_to(T* to) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = at[i];
  }
  __device__ void take(const T* other) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) at[i] += other[i];
  }
  // And leaves zeros there.
  __device__ void take(Part& other) {
    take(other.at);
    other = Part{};
  }
};

__device__ inline float product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double product(double a, double b) { return __dmul_rn(a, b); }

// Rows with more edges than that are a whole block's work.
constexpr std::uint32_t kHubEdges = 4096;

__device__ inline bool is_hub(const GatherSum& sum, std::int64_t row) {
  return row < sum.rows && sum.index.row_ptr[row + 1] - sum.index.row_ptr[row] > kHubEdges;
}

template <class T>
__device__ T* accumulator(const GatherSum& sum, std::int64_t row) {
  const auto block = static_cast<std::uint32_t>(row) / static_cast<std::uint32_t>(sum.block_rows);
  return static_cast<T*>(sum.accumulators[blockIdx.y * sum.block_count + block]) +
         (row - std::int64_t{block} * sum.block_rows) * sum.stride;
}

// A row of a slice, as its lanes sum it.
template <class T, bool kWeighted, int kCount>
class Row {
 public:
  // `sources`: row 0 of each span. Lanes that have no part of the row read its first one.
  __device__ Row(const GatherSum& sum, const T* const* sources, int lane)
      : index_(sum.index),
        sources_(sources),
        stride_(static_cast<std::uint32_t>(sum.stride)),
        offset_(lane * kCount < sum.stride ? lane * kCount : 0) {}

  Part<T, kCount> total{};

  __device__ std::uint32_t offset() const { return offset_; }

  // total += the pieces of edges [begin, end), which begin with one and end with another. Of edges
  // after the last one it is again: loads ask for nothing, so that none waits for another.
  __device__ void add(std::uint32_t begin, std::uint32_t end) {
    std::uint32_t next[kEdgesAhead<T>];
    const auto read_ahead = [&](std::uint32_t first) {
#pragma unroll
      for (int e = 0; e < kEdgesAhead<T>; ++e)
        next[e] = __ldg(index_.neighbours + min(first + e, end - 1));
    };
    Part<T, kCount> piece{};
    if (begin < end) read_ahead(begin);
    for (std::uint32_t first = begin; first < end; first += kEdgesAhead<T>) {
      Part<T, kCount> rows[kEdgesAhead<T>];
      unsigned cuts = 0;  // edges that begin a piece
#pragma unroll
      for (int e = 0; e < kEdgesAhead<T>; ++e) {
        const IndexedEdge edge = next[e];
        rows[e] = Part<T, kCount>::load(sources_[edge.span()] + (edge.row() * stride_ + offset_));
        cuts |= edge.begins_piece() ? 1u << e : 0u;
      }
      float weights[kEdgesAhead<T>];
#pragma unroll
      for (int e = 0; kWeighted && e < kEdgesAhead<T>; ++e) {
        weights[e] = __ldg(index_.weights + min(first + e, end - 1));
      }
      read_ahead(min(first + kEdgesAhead<T>, end - 1));
      const std::uint32_t left = end - first;
#pragma unroll
      for (int e = 0; e < kEdgesAhead<T>; ++e) {
        if (e >= left) continue;
        if ((cuts >> e & 1) != 0) total.take(piece);
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          piece.at[i] +=
              kWeighted ? product(static_cast<T>(weights[e]), rows[e].at[i]) : rows[e].at[i];
        }
      }
    }
    total.take(piece);
  }

 private:
  const EdgeIndex& index_;
  const T* const* const sources_;
  const std::uint32_t stride_, offset_;
};

// Pieces of a row that a whole block of threads sums, of so many spans at a time.
constexpr int kSpansAtOnce = 32;
template <class T>
struct Hub {
  std::uint32_t begins[kSpansAtOnce + 1];  // edges, by span
  std::uint32_t pieces[kSpansAtOnce + 1];  // before the span's
  T sums[kRowsOfBlock][kSliceWidth];       // of pieces
};

// The first of a row's edges [begin, end) that comes from `span` or one after it.
__device__ inline std::uint32_t first_edge_of(const EdgeIndex& index, std::uint32_t begin,
                                              std::uint32_t end, std::uint32_t span) {
  while (begin < end) {
    const std::uint32_t middle = begin + (end - begin) / 2;
    if (IndexedEdge(__ldg(index.neighbours + middle)).span() < span) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// Cuts a hub's edges from spans [first_span, first_span + kSpansAtOnce) into pieces. All threads.
template <class T>
__device__ void cut(const EdgeIndex& index, std::int64_t row, std::uint32_t first_span,
                    Hub<T>& hub) {
  if (threadIdx.x <= kSpansAtOnce) {
    hub.begins[threadIdx.x] =
        first_edge_of(index, index.row_ptr[row], index.row_ptr[row + 1], first_span + threadIdx.x);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    hub.pieces[0] = 0;
    for (int i = 0; i < kSpansAtOnce; ++i) {
      const std::uint32_t edges = hub.begins[i + 1] - hub.begins[i];
      hub.pieces[i + 1] = hub.pieces[i] + (edges + kPieceEdges - 1) / kPieceEdges;
    }
  }
  __syncthreads();
}

// Of pieces from `first` on, each by eight lanes.
template <class T, bool kWeighted, int kCount>
__device__ void sum_pieces(const GatherSum& sum, const T* const* sources, std::uint32_t first,
                           Hub<T>& hub) {
  const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  const std::uint32_t piece = first + group;
  if (piece >= hub.pieces[kSpansAtOnce]) return;
  int span = 0;
  while (hub.pieces[span + 1] <= piece) ++span;
  const std::uint32_t edge = hub.begins[span] + (piece - hub.pieces[span]) * kPieceEdges;
  Row<T, kWeighted, kCount> row(sum, sources, lane);
  row.add(edge, min(edge + kPieceEdges, hub.begins[span + 1]));
  if (lane * kCount < sum.stride) row.total.copy_to(hub.sums[group] + lane * kCount);
}

// A row with many edges: all threads sum its pieces, then one a column adds them up in order.
template <class T, bool kWeighted, int kCount>
__device__ void sum_hub(const GatherSum& sum, const T* const* sources, std::int64_t row,
                        Hub<T>& hub) {
  bool begins = sum.begins;
  for (std::uint32_t span = 0; span < sum.span_count; span += kSpansAtOnce) {
    cut(sum.index, row, span, hub);
    for (std::uint32_t first = 0; first < hub.pieces[kSpansAtOnce]; first += kRowsOfBlock) {
      sum_pieces<T, kWeighted, kCount>(sum, sources, first, hub);
      __syncthreads();
      if (threadIdx.x < sum.stride) {
        T* const to = accumulator<T>(sum, row) + threadIdx.x;
        T total = begins ? T(0) : *to;
        const std::uint32_t count = min(hub.pieces[kSpansAtOnce] - first, kRowsOfBlock);
        for (std::uint32_t i = 0; i < count; ++i) total += hub.sums[i][threadIdx.x];
        *to = total;
      }
      begins = false;
      __syncthreads();
    }
  }
}

// blockIdx.y: the slice.
template <class T, bool kWeighted, int kCount>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 4 ? 3 : 2) gather(GatherSum sum) {
  __shared__ Hub<T> hub;
  auto** const sources = reinterpret_cast<const T**>(shared_bytes);  // by span
  for (std::int64_t i = threadIdx.x; i < sum.span_count; i += kThreads) {
    sources[i] = static_cast<const T*>(sum.sources[blockIdx.y * sum.span_count + i]);
  }
  // Hubs that stand side by side go to several blocks of threads.
  const auto hub_of = [&](unsigned i) { return blockIdx.x + std::int64_t{i} * gridDim.x; };
  const bool finds = threadIdx.x < kRowsOfBlock && is_hub(sum, hub_of(threadIdx.x));
  if (__syncthreads_or(finds) != 0) {
    for (unsigned i = 0; i < kRowsOfBlock; ++i) {
      if (is_hub(sum, hub_of(i))) sum_hub<T, kWeighted, kCount>(sum, sources, hub_of(i), hub);
    }
  }
  const int lane = threadIdx.x % kLanes;
  const std::int64_t at = std::int64_t{blockIdx.x} * kRowsOfBlock + threadIdx.x / kLanes;
  if (at >= sum.rows || is_hub(sum, at)) return;  // all lanes of the row
  const std::uint32_t begin = sum.index.row_ptr[at], end = sum.index.row_ptr[at + 1];
  if (begin == end && !sum.begins) return;
  const bool owns = lane * kCount < sum.stride;
  Row<T, kWeighted, kCount> row(sum, sources, lane);
  T* const to = accumulator<T>(sum, at) + row.offset();
  if (owns && !sum.begins) row.total = Part<T, kCount>::load(to);
  row.add(begin, end);
  if (owns) row.total.store(to);
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
