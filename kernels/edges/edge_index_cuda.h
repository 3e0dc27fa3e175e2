// The edges of a window by the row that folds them, made on the GPU from edge chunks as they lie:
// what kernels over edges walk. Both encodings of tiles become one, edges outside the train split
// are left out, self loops are put in. Some 9 bytes an edge are written, once for all slices.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "storage/format/edge_layout.h"

namespace ooc::cuda {

// One span of a window; memory of the device.
struct IndexedSpan {
  const std::byte* chunk = nullptr;      // null: no edges
  const std::uint8_t* splits = nullptr;  // of the span's rows; null: every edge is taken
};

// Spans into some destination blocks of one panel.
struct IndexedWindow {
  EdgeLayout layout;
  std::int64_t first_span = 0, span_count = 0;
  std::int64_t first_block = 0, block_count = 0;
  const IndexedSpan* spans = nullptr;  // of the device
  // A bit a vertex, of the device: those without one get an edge from themselves, of weight 1,
  // after their own span's. Null: no edges are added.
  const std::uint64_t* self_loops = nullptr;

  // Of all blocks, as if the graph's last one were whole.
  std::int64_t rows() const { return block_count * layout.block_rows; }
};

// Edges of a row from one span are summed piece by piece, of so many edges.
inline constexpr std::uint32_t kPieceEdges = 256;

// An edge of an index, in a word: whether a piece begins with it, the span of the window that it
// comes from, its row in the span.
struct IndexedEdge {
  std::uint32_t word;

  __host__ __device__ IndexedEdge(std::uint32_t bits) : word(bits) {}
  __host__ __device__ IndexedEdge(std::uint32_t span, std::uint32_t row, bool begins_piece)
      : word((begins_piece ? 1u << 31 : 0u) | span << 16 | row) {}
  __host__ __device__ bool begins_piece() const { return word >> 31 != 0; }
  __host__ __device__ std::uint32_t span() const { return word >> 16 & 0x7fffu; }
  __host__ __device__ std::uint32_t row() const { return word & 0xffffu; }
};

// Memory of the device. Edges of a row are in (span, tile, edge) order.
struct EdgeIndex {
  std::uint32_t* row_ptr = nullptr;     // [rows + 1]; the last one is the number of edges
  std::uint32_t* strip_sums = nullptr;  // [rows / kIndexStrip]: what it is made with
  std::uint32_t* neighbours = nullptr;  // by edge: IndexedEdge
  float* weights = nullptr;             // by edge; null: they are not wanted
};

// In four kernels on the stream. A window has at most kMostIndexedRows rows and kMostIndexedSpans
// spans, and fewer than 65,536 blocks.
void build_edge_index(const IndexedWindow& window, const EdgeIndex& index, cudaStream_t stream);

}  // namespace ooc::cuda
