#include "kernels/edges/gather_cpu.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <variant>
#include <vector>

#include "kernels/rows/cpu_traversal.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc::cpu {
namespace {

constexpr std::int64_t kCacheLineBytes = 64;
constexpr int kSecondLevel = 2;  // of caches, as __builtin_prefetch counts
// Rows of sources are read at random, and in sparse tiles those of accumulators nearly so: the rows
// of so many edges to come are asked for, 4 KiB on either side; 8 KiB where accumulators are near.
// They are asked into the second-level cache, which can wait for more lines at once than the first:
// twice as fast on Zen 4 (bench/notes/kernels.md).
template <class T, int Width>
constexpr std::uint32_t kEdgesAhead = 4096 / std::max<std::int64_t>(Width* std::int64_t{sizeof(T)},
                                                                    kCacheLineBytes);

template <class T, int Width>
void prefetch_row(const T* row) {
  const auto* bytes = reinterpret_cast<const char*>(row);
  for (std::int64_t line = 0; line < Width * std::int64_t{sizeof(T)}; line += kCacheLineBytes) {
    __builtin_prefetch(bytes + line, 0, kSecondLevel);
  }
}

// row += x or factor x, in vectors: of loops with few turns the compiler makes scalars.
template <bool Weighted, class T, int Width>
void add_row(const T* x, T factor, T* row) {
  constexpr int kLanes = 32 / sizeof(T);
  if constexpr (Width % kLanes == 0) {
    typedef T Vector __attribute__((vector_size(32)));
    for (int c = 0; c < Width; c += kLanes) {
      Vector sum, addend;
      std::memcpy(&sum, row + c, sizeof sum);
      std::memcpy(&addend, x + c, sizeof addend);
      sum += Weighted ? factor * addend : addend;
      std::memcpy(row + c, &sum, sizeof sum);
    }
  } else {
    for (int c = 0; c < Width; ++c) row[c] += Weighted ? factor * x[c] : x[c];
  }
}

template <bool Weighted, class T, int Width>
class SourceRows {
 public:
  SourceRows(const TileView& tile, const T* rows, std::uint32_t ahead)
      : locals_(tile.sources),
        weights_(tile.weights),
        last_(tile.edge_count - 1),
        ahead_(ahead),
        rows_(rows) {}

  // The row of an edge's source; asks for the one of a later edge.
  const T* operator[](std::uint32_t edge) const {
    prefetch_row<T, Width>(row(std::min(edge + ahead_, last_)));
    return row(edge);
  }
  T factor(std::uint32_t edge) const { return Weighted ? static_cast<T>(weights_[edge]) : T{1}; }

 private:
  const T* row(std::uint32_t edge) const { return rows_ + std::int64_t{locals_[edge]} * Width; }

  const std::uint16_t* locals_;
  const float* weights_;
  std::uint32_t last_, ahead_;
  const T* rows_;
};

// Adds a tile's edges to the rows of its block, in order, and stops where it is told to.
template <bool Weighted, class T, int Width>
class RunsSum {
 public:
  RunsSum(const TileView& tile, const T* sources, std::uint32_t ahead)
      : rows_(tile.rows), ends_(tile.ends), count_(tile.row_count), source_(tile, sources, ahead) {}

  bool done() const { return next_ == count_; }

  // Of rows below `end` that are left.
  void add_below(std::int64_t end, T* accumulator) {
    const SourceRows<Weighted, T, Width> source = source_;
    std::uint32_t run = next_, edge = edge_;
    for (; run < count_ && rows_[run] < end; ++run) {
      T* row = accumulator + std::int64_t{rows_[run]} * Width;
      T sum[Width];  // stays in registers over the run
      for (int c = 0; c < Width; ++c) sum[c] = row[c];
      for (const std::uint32_t last = ends_[run]; edge < last; ++edge) {
        const T* x = source[edge];
        const T factor = source.factor(edge);
        for (int c = 0; c < Width; ++c) sum[c] += Weighted ? factor * x[c] : x[c];
      }
      for (int c = 0; c < Width; ++c) row[c] = sum[c];
    }
    next_ = run;
    edge_ = edge;
  }

 private:
  const std::uint16_t* rows_;
  const std::uint32_t* ends_;
  std::uint32_t count_;
  SourceRows<Weighted, T, Width> source_;
  std::uint32_t next_ = 0;  // run
  std::uint32_t edge_ = 0;
};

// The rows of a tile of pairs, one edge after the other.
class PairRows {
 public:
  explicit PairRows(const TileView& tile) : delta_(tile.deltas), escape_(tile.escapes) {}
  std::int64_t next() {
    const std::uint8_t delta = *delta_++;
    row_ = delta == kRowEscape ? *escape_++ : row_ + delta;
    return row_;
  }

 private:
  const std::uint8_t* delta_;
  const std::uint16_t* escape_;
  std::int64_t row_ = 0;
};

template <bool Weighted, class T, int Width>
class PairsSum {
 public:
  PairsSum(const TileView& tile, const T* sources, std::uint32_t ahead)
      : count_(tile.edge_count),
        ahead_(ahead),
        source_(tile, sources, ahead),
        rows_(tile),
        later_rows_(tile),
        row_(rows_.next()) {}

  bool done() const { return edge_ == count_; }

  void add_below(std::int64_t end, T* accumulator) {
    PairsSum at = *this;  // in registers
    const auto prefetch = [&] {
      prefetch_row<T, Width>(accumulator + at.later_rows_.next() * Width);
      ++at.later_;
    };
    while (at.later_ < std::min(at.edge_ + ahead_, count_)) prefetch();
    while (at.edge_ < count_ && at.row_ < end) {
      if (at.later_ < count_) prefetch();
      add_row<Weighted, T, Width>(at.source_[at.edge_], at.source_.factor(at.edge_),
                                  accumulator + at.row_ * Width);
      if (++at.edge_ < count_) at.row_ = at.rows_.next();
    }
    *this = at;
  }

 private:
  std::uint32_t count_, ahead_;
  SourceRows<Weighted, T, Width> source_;
  PairRows rows_, later_rows_;
  std::int64_t row_;  // of edge_
  std::uint32_t edge_ = 0, later_ = 0;
};

// Rows of accumulators that are gone over tile by tile before the next ones are: they stay in a
// core's second-level cache meanwhile, as long as a tile has enough edges in a strip to go on with:
// 64, of the largest blocks.
template <class T, int Width>
std::int64_t strip_rows(const SumGroup& group) {
  constexpr std::int64_t kBytes = 128 << 10, kEdgesOfTile = 64;
  constexpr std::int64_t kRows = kBytes / (Width * std::int64_t{sizeof(T)});
  if (group.entries.size() == 1) return kMaxBlockRows;
  std::int64_t edges = 1;
  for (const SumGroup::Entry& entry : group.entries) edges += entry.tile.edge_count;
  const auto tiles = static_cast<std::int64_t>(group.entries.size());
  return std::max(kRows, kMaxBlockRows * kEdgesOfTile * tiles / edges);
}

template <bool Weighted, class T, int Width>
void add_group(const SumGroup& group) {
  const std::uint32_t ahead = kEdgesAhead<T, Width> * (group.entries.size() > 1 ? 2 : 1);
  using Runs = RunsSum<Weighted, T, Width>;
  using Pairs = PairsSum<Weighted, T, Width>;
  std::vector<std::variant<Runs, Pairs>> tiles;
  tiles.reserve(group.entries.size());
  for (const SumGroup::Entry& entry : group.entries) {
    const auto* sources = static_cast<const T*>(entry.sources);
    if (entry.tile.edge_count == 0) continue;
    if (entry.tile.encoding == TileEncoding::kRuns) {
      tiles.emplace_back(Runs(entry.tile, sources, ahead));
    } else {
      tiles.emplace_back(Pairs(entry.tile, sources, ahead));
    }
  }
  auto* accumulator = static_cast<T*>(group.accumulator);
  const std::int64_t rows = strip_rows<T, Width>(group);
  for (std::int64_t end = rows, left = 1; left > 0; end += rows) {
    left = 0;
    for (auto& tile : tiles) {
      std::visit(
          [&](auto& sum) {
            sum.add_below(end, accumulator);
            if (!sum.done()) ++left;
          },
          tile);
    }
  }
}

template <bool Weighted, class T, int Width>
void add_edges(const SumEdges& group) {
  const auto* sources = static_cast<const T*>(group.sources);
  auto* accumulator = static_cast<T*>(group.accumulator);
  const EdgeBatch& edges = group.edges;
  const auto prefetch = [&](std::int64_t edge) {
    prefetch_row<T, Width>(sources + std::int64_t{edges.neighbours[edge]} * Width);
    prefetch_row<T, Width>(accumulator + std::int64_t{edges.rows[edge]} * Width);
  };
  const auto ahead = std::min<std::int64_t>(kEdgesAhead<T, Width>, edges.count);
  for (std::int64_t edge = 0; edge < ahead; ++edge) prefetch(edge);
  for (std::int64_t edge = 0; edge < edges.count; ++edge) {
    if (edge + ahead < edges.count) prefetch(edge + ahead);
    const T factor = Weighted ? static_cast<T>(group.weights[edges.edge(edge)]) : T{1};
    add_row<Weighted, T, Width>(sources + std::int64_t{edges.neighbours[edge]} * Width, factor,
                                accumulator + std::int64_t{edges.rows[edge]} * Width);
  }
}

// Calls add(width), a constant.
template <class Add>
void with_stride(std::int64_t stride, Add&& add) {
  switch (stride) {
    case 1:
      return add(std::integral_constant<int, 1>());
    case 2:
      return add(std::integral_constant<int, 2>());
    case 3:
      return add(std::integral_constant<int, 3>());
    case 4:
      return add(std::integral_constant<int, 4>());
    case 5:
      return add(std::integral_constant<int, 5>());
    case 6:
      return add(std::integral_constant<int, 6>());
    case 7:
      return add(std::integral_constant<int, 7>());
    case 8:
      return add(std::integral_constant<int, 8>());
    case 16:
      return add(std::integral_constant<int, 16>());
    case 24:
      return add(std::integral_constant<int, 24>());
    case 32:
      return add(std::integral_constant<int, 32>());
    default:
      check_failed("a slice's stride is below 8 or a multiple of 8 up to 32", __FILE__, __LINE__);
  }
}

}  // namespace

template <class T>
void gather_sum(const SumGroup& group) {
  with_stride(group.stride, [&](auto width) {
    group.weighted ? add_group<true, T, width()>(group) : add_group<false, T, width()>(group);
  });
}

template <class T>
void gather_sum(const SumEdges& edges) {
  with_stride(edges.stride, [&](auto width) {
    edges.weights != nullptr ? add_edges<true, T, width()>(edges)
                             : add_edges<false, T, width()>(edges);
  });
}

namespace {

template <bool Weighted, class T>
void fold_edges(const EdgeBatch& batch, const MatrixView& x, const MatrixView* factors,
                const MatrixView& y) {
  for_each_strip(x, [&](const Strip& strip) {
    const StripRows<T> values(x, strip);
    const StripRows<T> sums(y, strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < batch.count; ++i) {
        const T factor = Weighted ? factors->data<T>(0)[i * factors->stride(0)] : T{1};
        const T* __restrict value = values.row(i);
        T* __restrict row = sums.row(batch.rows[i]);
        for (std::int64_t c = 0; c < cols; ++c) row[c] += Weighted ? factor * value[c] : value[c];
      }
    });
  });
}

}  // namespace

template <class T>
void fold_sum(const EdgeBatch& batch, const MatrixView& x, const MatrixView* factors,
              const MatrixView& y) {
  factors != nullptr ? fold_edges<true, T>(batch, x, factors, y)
                     : fold_edges<false, T>(batch, x, factors, y);
}

#define OOC_INSTANTIATE(T)                                                          \
  template void gather_sum<T>(const SumGroup&);                                     \
  template void gather_sum<T>(const SumEdges&);                                     \
  template void fold_sum<T>(const EdgeBatch&, const MatrixView&, const MatrixView*, \
                            const MatrixView&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
