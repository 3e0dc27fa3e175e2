// Folds over in-edges on the CPU: what a propagation does with the edges of one destination block.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/edges/edge_batch.h"
#include "storage/format/tile.h"

namespace ooc::cpu {

// One destination block's rows of one slice, and the tiles to add to it, in span order.
struct SumGroup {
  struct Entry {
    TileView tile;
    const void* sources;  // row 0 of the span, same slice
  };
  std::span<const Entry> entries;
  void* accumulator = nullptr;  // row 0 of the block
  std::int64_t stride = 0;      // elements between two rows, on both sides
};

// accumulator[row] += source[s] for every edge, of each row in (entry, edge) order: the same bits
// however edges are cut into tiles and tiles into groups. Several tiles are gone through in strips
// of rows, so that a strip stays in a core's cache from tile to tile: a group costs less than its
// tiles one by one. The stride is that of a vertex chunk (storage/format/tensor_layout.h): below 8,
// or a multiple of 8 up to 32. Padding is added along; it is never data.
template <class T>
void gather_sum(const SumGroup& group);

// accumulator[rows[i]] += source[sources[i]] for some edges of one tile, in order: the same bits as
// above for those.
struct SumEdges {
  const EdgeBatch& edges;
  const void* sources;  // row 0 of the span
  void* accumulator = nullptr;
  std::int64_t stride = 0;
};
template <class T>
void gather_sum(const SumEdges& edges);

}  // namespace ooc::cpu
