// Sums over edges on a GPU: rows of neighbours, as they are or times the weights of their edges.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/edges/edge_index_cuda.h"
#include "storage/base/types.h"

namespace ooc::cuda {

// All edges of an index into the rows of its window, for some slices. Memory of the device.
struct GatherSum {
  DType dtype = DType::kF32;  // of rows on both sides, or kF64
  EdgeIndex index;            // its weights: null where rows count as they are
  std::int64_t block_rows = 0, block_count = 0;
  std::int64_t rows = 0;        // of all blocks; the last one may be short
  std::int64_t span_count = 0;  // kMostIndexedSpans at most
  std::int64_t slice_count = 0;
  std::int64_t stride = 0;  // elements between two rows: that of a vertex chunk (tensor_layout.h)
  // Row 0 of each span, slice after slice, and of each block. Rows begin at multiples of 16 bytes
  // where the stride is a multiple of 8.
  const void* const* sources = nullptr;  // [slice_count x span_count]
  void* const* accumulators = nullptr;   // [slice_count x block_count]
  bool begins = false;                   // accumulators hold nothing yet
};

// accumulator[row] += the sum of source[s], or of weight source[s], over each piece, in the index's
// order of edges; a product is rounded before it is added. So the bits depend on neither how
// windows are cut nor how many lanes share a row: a block of threads takes the pieces of a row with
// many edges. Padding is added along. One kernel on the stream.
void gather_sum(const GatherSum& sum, cudaStream_t stream);

}  // namespace ooc::cuda
