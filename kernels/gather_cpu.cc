#include "kernels/gather_cpu.h"

#include "storage/errors.h"
#include "storage/tensor_layout.h"

namespace ooc::cpu {
namespace {

// One accumulator row held in registers.
template <class T, int Width>
struct RowSum {
  T values[Width];

  void load(const T* row) {
    for (int c = 0; c < Width; ++c) values[c] = row[c];
  }
  void add(const T* row) {
    for (int c = 0; c < Width; ++c) values[c] += row[c];
  }
  void store(T* row) const {
    for (int c = 0; c < Width; ++c) row[c] = values[c];
  }
};

template <class T, int Width>
void add_runs(const TileView& tile, const T* sources, T* accumulator) {
  std::uint32_t edge = 0;
  for (std::uint32_t i = 0; i < tile.row_count; ++i) {
    T* row = accumulator + std::int64_t{tile.rows[i]} * Width;
    RowSum<T, Width> sum;
    sum.load(row);
    for (const std::uint32_t end = tile.ends[i]; edge < end; ++edge) {
      sum.add(sources + std::int64_t{tile.sources[edge]} * Width);
    }
    sum.store(row);
  }
}

template <class T, int Width>
void add_pairs(const TileView& tile, const T* sources, T* accumulator) {
  const std::uint16_t* escape = tile.escapes;
  std::int64_t row = 0;
  for (std::uint32_t edge = 0; edge < tile.edge_count; ++edge) {
    const std::uint8_t delta = tile.deltas[edge];
    row = delta == kRowEscape ? *escape++ : row + delta;
    RowSum<T, Width> sum;
    sum.load(accumulator + row * Width);
    sum.add(sources + std::int64_t{tile.sources[edge]} * Width);
    sum.store(accumulator + row * Width);
  }
}

template <class T, int Width>
void add_group(const TileGroup& group) {
  auto* accumulator = static_cast<T*>(group.accumulator);
  for (const TileGroup::Entry& entry : group.entries) {
    const auto* sources = static_cast<const T*>(entry.sources);
    if (entry.tile.encoding == TileEncoding::kRuns) {
      add_runs<T, Width>(entry.tile, sources, accumulator);
    } else {
      add_pairs<T, Width>(entry.tile, sources, accumulator);
    }
  }
}

}  // namespace

template <class T>
void gather_sum(const TileGroup& group) {
  OOC_CHECK(group.stride == group.source_stride);
  OOC_CHECK(group.cols <= group.stride);
  switch (group.stride) {
    case 1:
      return add_group<T, 1>(group);
    case 2:
      return add_group<T, 2>(group);
    case 3:
      return add_group<T, 3>(group);
    case 4:
      return add_group<T, 4>(group);
    case 5:
      return add_group<T, 5>(group);
    case 6:
      return add_group<T, 6>(group);
    case 7:
      return add_group<T, 7>(group);
    case 8:
      return add_group<T, 8>(group);
    case 16:
      return add_group<T, 16>(group);
    case 24:
      return add_group<T, 24>(group);
    case 32:
      return add_group<T, 32>(group);
    default:
      check_failed("a chunk's stride is below 8 or a multiple of 8 up to 32", __FILE__, __LINE__);
  }
}

template void gather_sum<float>(const TileGroup&);
template void gather_sum<double>(const TileGroup&);

}  // namespace ooc::cpu
