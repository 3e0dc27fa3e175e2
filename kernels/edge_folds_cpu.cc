#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/cpu_traversal.h"
#include "kernels/edge_kernel_cpu.h"
#include "kernels/edge_key.h"
#include "kernels/element_math.h"
#include "storage/errors.h"
#include "storage/tensor_layout.h"

namespace ooc::cpu {

template <class T>
void fold_sum(const EdgeBatch& batch, const MatrixView& x, const MatrixView& y) {
  for_each_strip(x, [&](const Strip& strip) {
    const StripRows<T> values(x, strip);
    const StripRows<T> sums(y, strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < batch.count; ++i) {
        const T* __restrict value = values.row(i);
        T* __restrict row = sums.row(batch.rows[i]);
        for (std::int64_t c = 0; c < cols; ++c) row[c] += value[c];
      }
    });
  });
}

template <class T>
void fold_max(const EdgeBatch& batch, const MatrixView& x, const MatrixView& keys,
              const MatrixView& y, const MatrixView& winner) {
  const std::int64_t* key = keys.data<std::int64_t>(0);
  const std::int64_t key_stride = keys.stride(0);
  for_each_strip(x, [&](const Strip& strip) {
    const StripRows<T> values(x, strip);
    const StripRows<T> largest(y, strip);
    const StripRows<std::int64_t> winners(winner, strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < batch.count; ++i) {
        const T* __restrict value = values.row(i);
        T* __restrict row = largest.row(batch.rows[i]);
        std::int64_t* __restrict from = winners.row(batch.rows[i]);
        const std::int64_t* k = key + i * key_stride;
        const std::int64_t edge = winner_key(k[0], k[2]);
        for (std::int64_t c = 0; c < cols; ++c) {
          const T v = value[c], best = row[c];
          const bool tie = (v == best) & (edge < from[c]);
          const bool wins = (from[c] == 0) | (v > best) | (v != v) | tie;
          row[c] = wins ? v : best;
          from[c] = wins ? edge : from[c];
        }
      }
    });
  });
}

namespace {

// Columns that lie together in one slice and belong to one head.
struct Segment {
  std::int64_t slice, offset, cols, head;
};

std::vector<Segment> head_segments(const MatrixView& x, std::int64_t heads) {
  const std::int64_t width = x.cols / heads;
  std::vector<Segment> segments;
  for (std::int64_t column = 0; column < x.cols;) {
    const std::int64_t head = column / width, slice = column / x.slice_width;
    const std::int64_t end = std::min({(head + 1) * width, (slice + 1) * x.slice_width, x.cols});
    segments.push_back({slice, column - slice * x.slice_width, end - column, head});
    column = end;
  }
  return segments;
}

}  // namespace

template <class T>
void fold_softmax(const EdgeBatch& batch, const MatrixView& score, const MatrixView& x,
                  const MatrixView& y, const MatrixView& max, const MatrixView& sum) {
  const std::int64_t heads = score.cols;
  OOC_CHECK(heads >= 1 && heads <= kSliceWidth && x.cols % heads == 0);
  const std::vector<Segment> segments = head_segments(x, heads);
  alignas(64) std::array<T, kSliceWidth> old_share;  // of what was summed before
  alignas(64) std::array<T, kSliceWidth> share;      // of this edge
  constexpr T kNothing = -std::numeric_limits<T>::infinity();
  for (std::int64_t i = 0; i < batch.count; ++i) {
    const std::int64_t row = batch.rows[i];
    const T* s = score.data<T>(0) + i * score.stride(0);
    T* m = max.data<T>(0) + row * max.stride(0);
    T* z = sum.data<T>(0) + row * sum.stride(0);
    for (std::int64_t h = 0; h < heads; ++h) {
      const T largest = z[h] == T{0} || s[h] > m[h] ? s[h] : m[h];
      old_share[static_cast<std::size_t>(h)] = z[h] == T{0} ? T{0} : m[h] - largest;
      share[static_cast<std::size_t>(h)] = largest == kNothing ? kNothing : s[h] - largest;
      m[h] = largest;
    }
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto at = static_cast<std::size_t>(h);
      old_share[at] = exp_nonpositive(old_share[at]);
      share[at] = exp_nonpositive(share[at]);
      z[h] = z[h] * old_share[at] + share[at];
    }
    for (const Segment& segment : segments) {
      const T keep = old_share[static_cast<std::size_t>(segment.head)];
      const T weight = share[static_cast<std::size_t>(segment.head)];
      const T* __restrict value =
          x.data<T>(segment.slice) + i * x.stride(segment.slice) + segment.offset;
      T* __restrict to = y.data<T>(segment.slice) + row * y.stride(segment.slice) + segment.offset;
      for (std::int64_t c = 0; c < segment.cols; ++c) to[c] = to[c] * keep + weight * value[c];
    }
  }
}

#define OOC_INSTANTIATE(T)                                                              \
  template void fold_sum<T>(const EdgeBatch&, const MatrixView&, const MatrixView&);    \
  template void fold_max<T>(const EdgeBatch&, const MatrixView&, const MatrixView&,     \
                            const MatrixView&, const MatrixView&);                      \
  template void fold_softmax<T>(const EdgeBatch&, const MatrixView&, const MatrixView&, \
                                const MatrixView&, const MatrixView&, const MatrixView&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
