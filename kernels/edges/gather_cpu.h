// Sums over edges on the CPU: what a propagation does with the edges of one destination block. A
// product with a factor of the edge is rounded before it is added, so every way here gives the bits
// of a product that is made first and summed then.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/edges/edge_batch.h"
#include "kernels/spec/matrix_view.h"
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
  bool weighted = false;        // rows count times the weights of their edges
};

// accumulator[row] += source[s], or weight source[s], for every edge, of each row in (entry, edge)
// order: the same bits however edges are cut into tiles and tiles into groups. Several tiles are
// gone through in strips of rows, so that a strip stays in a core's cache from tile to tile: a
// group costs less than its tiles one by one. The stride is that of a vertex chunk
// (storage/format/tensor_layout.h): below 8, or a multiple of 8 up to 32. Padding is added along;
// it is never data.
template <class T>
void gather_sum(const SumGroup& group);

// accumulator[rows[i]] += source[sources[i]] for some edges of one tile, in order: the same bits as
// above for those.
struct SumEdges {
  const EdgeBatch& edges;
  const void* sources;  // row 0 of the span
  void* accumulator = nullptr;
  std::int64_t stride = 0;
  const float* weights = nullptr;  // of the tile's edges; null: rows count as they are
};
template <class T>
void gather_sum(const SumEdges& edges);

// y[rows[i]] += x[i] for the edges of a batch, or factors[i] x[i]. `x`, `factors`: a row an edge;
// `y`: a row a vertex of the block. `factors`: null, or one column.
template <class T>
void fold_sum(const EdgeBatch& batch, const MatrixView& x, const MatrixView* factors,
              const MatrixView& y);

}  // namespace ooc::cpu
