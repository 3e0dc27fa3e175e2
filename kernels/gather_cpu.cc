#include "kernels/gather_cpu.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "storage/errors.h"
#include "storage/tensor_layout.h"

namespace ooc::cpu {
namespace {

constexpr std::int64_t kCacheLineBytes = 64;
// Rows of sources are read at random, and in sparse tiles those of accumulators nearly so: the rows
// of so many edges to come are asked for, 4 KiB on either side.
template <class T, int Width>
constexpr std::uint32_t kEdgesAhead = 4096 / std::max<std::int64_t>(Width* std::int64_t{sizeof(T)},
                                                                    kCacheLineBytes);

template <class T, int Width>
void prefetch_row(const T* row) {
  const auto* bytes = reinterpret_cast<const char*>(row);
  for (std::int64_t line = 0; line < Width * std::int64_t{sizeof(T)}; line += kCacheLineBytes) {
    __builtin_prefetch(bytes + line);
  }
}

// row += x, in vectors: of loops with few turns the compiler makes scalars.
template <class T, int Width>
void add_row(const T* x, T* row) {
  constexpr int kLanes = 32 / sizeof(T);
  if constexpr (Width % kLanes == 0) {
    typedef T Vector __attribute__((vector_size(32)));
    for (int c = 0; c < Width; c += kLanes) {
      Vector sum, addend;
      std::memcpy(&sum, row + c, sizeof sum);
      std::memcpy(&addend, x + c, sizeof addend);
      sum += addend;
      std::memcpy(row + c, &sum, sizeof sum);
    }
  } else {
    for (int c = 0; c < Width; ++c) row[c] += x[c];
  }
}

template <class T, int Width>
class SourceRows {
 public:
  SourceRows(const TileView& tile, const T* rows)
      : locals_(tile.sources), count_(tile.edge_count), rows_(rows) {}

  // The row of an edge's source; asks for the one of a later edge.
  const T* operator[](std::uint32_t edge) const {
    prefetch_row<T, Width>(row(std::min(edge + kEdgesAhead<T, Width>, count_ - 1)));
    return row(edge);
  }

 private:
  const T* row(std::uint32_t edge) const { return rows_ + std::int64_t{locals_[edge]} * Width; }

  const std::uint16_t* locals_;
  std::uint32_t count_;
  const T* rows_;
};

template <class T, int Width>
void add_runs(const TileView& tile, const T* sources, T* accumulator) {
  const SourceRows<T, Width> source(tile, sources);
  std::uint32_t edge = 0;
  for (std::uint32_t i = 0; i < tile.row_count; ++i) {
    T* row = accumulator + std::int64_t{tile.rows[i]} * Width;
    T sum[Width];  // stays in registers over the run
    for (int c = 0; c < Width; ++c) sum[c] = row[c];
    for (const std::uint32_t end = tile.ends[i]; edge < end; ++edge) {
      const T* x = source[edge];
      for (int c = 0; c < Width; ++c) sum[c] += x[c];
    }
    for (int c = 0; c < Width; ++c) row[c] = sum[c];
  }
}

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

template <class T, int Width>
void add_pairs(const TileView& tile, const T* sources, T* accumulator) {
  const SourceRows<T, Width> source(tile, sources);
  PairRows rows(tile);
  PairRows later_rows(tile);
  const auto prefetch = [&] { prefetch_row<T, Width>(accumulator + later_rows.next() * Width); };
  const std::uint32_t ahead = std::min(kEdgesAhead<T, Width>, tile.edge_count);
  for (std::uint32_t edge = 0; edge < ahead; ++edge) prefetch();
  for (std::uint32_t edge = 0; edge < tile.edge_count; ++edge) {
    if (edge + ahead < tile.edge_count) prefetch();
    add_row<T, Width>(source[edge], accumulator + rows.next() * Width);
  }
}

template <class T, int Width>
void add_group(const SumGroup& group) {
  auto* accumulator = static_cast<T*>(group.accumulator);
  for (const SumGroup::Entry& entry : group.entries) {
    const auto* sources = static_cast<const T*>(entry.sources);
    if (entry.tile.encoding == TileEncoding::kRuns) {
      add_runs<T, Width>(entry.tile, sources, accumulator);
    } else {
      add_pairs<T, Width>(entry.tile, sources, accumulator);
    }
  }
}

template <class T, int Width>
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
    add_row<T, Width>(sources + std::int64_t{edges.neighbours[edge]} * Width,
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
      check_failed("a chunk's stride is below 8 or a multiple of 8 up to 32", __FILE__, __LINE__);
  }
}

}  // namespace

template <class T>
void gather_sum(const SumGroup& group) {
  with_stride(group.stride, [&](auto width) { add_group<T, width()>(group); });
}

template <class T>
void gather_sum(const SumEdges& edges) {
  with_stride(edges.stride, [&](auto width) { add_edges<T, width()>(edges); });
}

template void gather_sum<float>(const SumGroup&);
template void gather_sum<double>(const SumGroup&);
template void gather_sum<float>(const SumEdges&);
template void gather_sum<double>(const SumEdges&);

}  // namespace ooc::cpu
