#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/edges/edge_work_cpu.h"
#include "kernels/rows/cpu_traversal.h"
#include "kernels/spec/element_math.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc::cpu {

namespace {

// The edges of a batch, each row's in the order of their keys, so that of equal values the first
// one wins.
class WinnerOrder {
 public:
  WinnerOrder(const EdgeBatch& batch, const MatrixView& keys)
      : rows_(batch.rows),
        count_(batch.count),
        keys_(keys.data<std::int64_t>(0)),
        stride_(keys.stride(0)) {
    thread_local std::vector<std::int32_t> edges;
    edges.resize(static_cast<std::size_t>(count_));
    std::iota(edges.begin(), edges.end(), 0);
    edges_ = edges.data();
    const auto before = [this](std::int32_t a, std::int32_t b) { return key(a) < key(b); };
    for (std::int64_t begin = 0, end = 0; begin < count_; begin = end) {
      end = end_of_row(begin);
      if (!std::is_sorted(edges_ + begin, edges_ + end, before)) {
        std::sort(edges_ + begin, edges_ + end, before);
      }
    }
  }

  // After the last edge of the row whose first one this is.
  std::int64_t end_of_row(std::int64_t edge) const {
    const std::int32_t row = rows_[edge];
    do ++edge;
    while (edge < count_ && rows_[edge] == row);
    return edge;
  }
  const std::int32_t* edges() const { return edges_; }
  std::int64_t key(std::int64_t edge) const { return keys_[edge * stride_]; }

 private:
  const std::int32_t* rows_;
  std::int64_t count_;
  const std::int64_t* keys_;
  std::int64_t stride_;
  std::int32_t* edges_ = nullptr;
};

// As wide as T, so that both go through the same lanes.
template <class T>
using EdgeIndex = std::conditional_t<sizeof(T) == sizeof(std::int32_t), std::int32_t, std::int64_t>;

namespace hn = hwy::HWY_NAMESPACE;
static_assert(!HWY_HAVE_SCALABLE, "vectors of unknown size can't lie in arrays");

// The largest of a few vectors of columns over the edges of a row, and the edges that it is from:
// both stay in registers. A NaN wins over everything, the first one over the others.
template <int Vectors, class D>
void max_of_edges(D d, const std::int32_t* edges, std::int64_t count, const hn::TFromD<D>* values,
                  std::int64_t stride, hn::TFromD<D>* largest, EdgeIndex<hn::TFromD<D>>* from) {
  const hn::RebindToSigned<D> d_index;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  hn::Vec<D> best[Vectors];
  hn::Vec<decltype(d_index)> winner[Vectors];
  for (int v = 0; v < Vectors; ++v) {
    best[v] = hn::LoadU(d, values + edges[0] * stride + v * kLanes);
    winner[v] = hn::Set(d_index, edges[0]);
  }
  for (std::int64_t i = 1; i < count; ++i) {
    const auto edge = hn::Set(d_index, edges[i]);
    for (int v = 0; v < Vectors; ++v) {
      const auto value = hn::LoadU(d, values + edges[i] * stride + v * kLanes);
      const auto is_first_nan = hn::AndNot(hn::IsNaN(best[v]), hn::IsNaN(value));
      const auto wins = hn::Or(hn::Gt(value, best[v]), is_first_nan);
      best[v] = hn::IfThenElse(wins, value, best[v]);
      winner[v] = hn::IfThenElse(hn::RebindMask(d_index, wins), edge, winner[v]);
    }
  }
  for (int v = 0; v < Vectors; ++v) {
    hn::StoreU(best[v], d, largest + v * kLanes);
    hn::StoreU(winner[v], d_index, from + v * kLanes);
  }
}

}  // namespace

template <class T>
void fold_max(const EdgeBatch& batch, const MatrixView& x, const MatrixView& keys,
              const MatrixView& y, const MatrixView& winner) {
  const WinnerOrder order(batch, keys);
  const std::int32_t* edges = order.edges();
  for_each_strip(x, [&](const Strip& strip) {
    const T* values = StripRows<T>(x, strip).row(0);
    const std::int64_t stride = x.stride(strip.slice), cols = strip.cols;
    const StripRows<T> largest(y, strip);
    const StripRows<std::int64_t> winners(winner, strip);
    for (std::int64_t begin = 0, end = 0; begin < batch.count; begin = end) {
      end = order.end_of_row(begin);
      T best[kStripCols];
      EdgeIndex<T> from[kStripCols];
      std::int64_t c = 0;
      const auto take = [&](auto vectors, auto lanes) {
        constexpr auto kCols = static_cast<std::int64_t>(vectors() * hn::MaxLanes(lanes));
        for (; c + kCols <= cols; c += kCols) {
          max_of_edges<vectors()>(lanes, edges + begin, end - begin, values + c, stride, best + c,
                                  from + c);
        }
      };
      take(std::integral_constant<int, 4>{}, hn::CappedTag<T, 8>{});
      take(std::integral_constant<int, 1>{}, hn::CappedTag<T, 8>{});
      take(std::integral_constant<int, 1>{}, hn::CappedTag<T, 4>{});
      take(std::integral_constant<int, 1>{}, hn::CappedTag<T, 1>{});
      std::int64_t key[kStripCols];
      for (c = 0; c < cols; ++c) key[c] = order.key(from[c]);
      T* __restrict row = largest.row(batch.rows[begin]);
      std::int64_t* __restrict row_winner = winners.row(batch.rows[begin]);
      for (c = 0; c < cols; ++c) {
        const T v = best[c], before = row[c];
        const bool is_nan = v != v, was_nan = before != before;
        const bool tie = (v == before) | (is_nan & was_nan);
        const bool wins = (row_winner[c] == 0) | (v > before) | (is_nan & !was_nan) |
                          (tie & (key[c] < row_winner[c]));
        row[c] = wins ? v : before;
        row_winner[c] = wins ? key[c] : row_winner[c];
      }
    }
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
  template void fold_max<T>(const EdgeBatch&, const MatrixView&, const MatrixView&,     \
                            const MatrixView&, const MatrixView&);                      \
  template void fold_softmax<T>(const EdgeBatch&, const MatrixView&, const MatrixView&, \
                                const MatrixView&, const MatrixView&, const MatrixView&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
