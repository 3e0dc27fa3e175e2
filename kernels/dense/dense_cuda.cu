// Products of rows in slices. A block of threads makes a tile of the output, a slice of the sum's
// dimension at a time; every element is a sum in order, so its bits depend on operands alone.
#include "kernels/cuda/launch_cuda.h"
#include "kernels/rows/cuda_row_kernels.h"
#include "kernels/rows/group_view_cuda.h"
#include "kernels/spec/operator.h"

namespace ooc::cuda {
namespace {

constexpr int kTile = 64, kDepth = 32, kOwn = 4;  // a thread owns 4 x 4 of the tile
static_assert(kTile / kOwn * (kTile / kOwn) == kThreads);

// What is multiplied: a(k, i) and b(k, j), zero beyond their ends, so that whole tiles are.
template <class T>
struct RowsTimesParameter {  // Y = X W, or X W^T
  Elements<const T> x, w;
  bool transposed;
  __device__ RowsTimesParameter(const GroupView& a, const GroupView& b, bool transposes)
      : x(a), w(b), transposed(transposes) {}
  __device__ std::int64_t depth() const { return x.cols; }
  __device__ T a(std::int64_t k, std::int64_t i) const {
    return i < x.rows && k < x.cols ? x.at(i, k) : T{0};
  }
  __device__ T b(std::int64_t k, std::int64_t j) const {
    if (transposed) return j < w.rows && k < w.cols ? w.at(j, k) : T{0};
    return k < w.rows && j < w.cols ? w.at(k, j) : T{0};
  }
};
template <class T>
struct RowsTimesRows {  // R = X^T G
  Elements<const T> x, g;
  __device__ RowsTimesRows(const GroupView& a, const GroupView& b, bool) : x(a), g(b) {}
  __device__ std::int64_t depth() const { return x.rows; }
  __device__ T a(std::int64_t k, std::int64_t i) const {
    return k < x.rows && i < x.cols ? x.at(k, i) : T{0};
  }
  __device__ T b(std::int64_t k, std::int64_t j) const {
    return k < g.rows && j < g.cols ? g.at(k, j) : T{0};
  }
};

// A tile of each operand in shared memory. kAcross: neighbouring threads load neighbouring i of
// a(k, i), else neighbouring k.
template <class T, class Factors, bool kAcross>
__device__ void load_tiles(const Factors& factors, std::int64_t first, T (&a)[kDepth][kTile + 1],
                           T (&b)[kDepth][kTile + 1]) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kTile, col = std::int64_t{blockIdx.y} * kTile;
  for (unsigned at = threadIdx.x; at < kDepth * kTile; at += kThreads) {
    const unsigned k = kAcross ? at / kTile : at % kDepth, i = kAcross ? at % kTile : at / kDepth;
    a[k][i] = factors.a(first + k, row + i);
    b[at / kTile][at % kTile] = factors.b(first + at / kTile, col + at % kTile);
  }
}

// to = or += the sum over k of a(k, i) b(k, j), k below `depth`.
template <class T, class Factors, bool kAdds, bool kAcross>
__global__ void __launch_bounds__(kThreads, 2)
    multiply(const GroupView* y, const GroupView* left_of, const GroupView* right_of,
             bool transposed) {
  const Elements<T> to(y[blockIdx.z]);
  if (std::int64_t{blockIdx.x} * kTile >= to.rows) return;  // of a shorter group
  const Factors factors(left_of[blockIdx.z], right_of[blockIdx.z], transposed);
  const std::int64_t depth = factors.depth();
  __shared__ T a[kDepth][kTile + 1], b[kDepth][kTile + 1];
  const unsigned i = threadIdx.x / (kTile / kOwn), j = threadIdx.x % (kTile / kOwn);
  T sums[kOwn][kOwn] = {};
  for (std::int64_t first = 0; first < depth; first += kDepth) {
    load_tiles<T, Factors, kAcross>(factors, first, a, b);
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < kDepth; ++k) {
      T left[kOwn], right[kOwn];
#pragma unroll
      for (int e = 0; e < kOwn; ++e) {
        left[e] = a[k][i + e * (kTile / kOwn)];
        right[e] = b[k][j + e * (kTile / kOwn)];
      }
#pragma unroll
      for (int e = 0; e < kOwn; ++e) {
#pragma unroll
        for (int f = 0; f < kOwn; ++f) sums[e][f] += left[e] * right[f];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int e = 0; e < kOwn; ++e) {
#pragma unroll
    for (int f = 0; f < kOwn; ++f) {
      const std::int64_t row = std::int64_t{blockIdx.x} * kTile + i + e * (kTile / kOwn);
      const std::int64_t col = std::int64_t{blockIdx.y} * kTile + j + f * (kTile / kOwn);
      if (row >= to.rows || col >= to.cols) continue;
      T& at = to.at(row, col);
      at = kAdds ? at + sums[e][f] : sums[e][f];
    }
  }
}

template <class T, class Factors, bool kAdds, bool kAcross>
void launch_product(const GroupCall& call, cudaStream_t stream) {
  const GroupOperand& to = call.outputs[0];
  const auto tiles = [](std::int64_t count) {
    return static_cast<unsigned>(ceil_div(count, kTile));
  };
  const dim3 blocks(tiles(to.rows), tiles(to.cols), static_cast<unsigned>(call.groups));
  launch(multiply<T, Factors, kAdds, kAcross>, {blocks, dim3(kThreads)}, stream, to.groups,
         call.inputs[0].groups, call.inputs[1].groups, call.attributes.transpose);
}

}  // namespace

template <class T>
void matmul(const GroupCall& call, cudaStream_t stream) {
  launch_product<T, RowsTimesParameter<T>, false, false>(call, stream);
}

template <class T>
void matmul_reduce(const GroupCall& call, cudaStream_t stream) {
  launch_product<T, RowsTimesRows<T>, true, true>(call, stream);
}

#define OOC_INSTANTIATE(T)                                 \
  template void matmul<T>(const GroupCall&, cudaStream_t); \
  template void matmul_reduce<T>(const GroupCall&, cudaStream_t);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cuda
