#include "kernels/edges/edge_index_cuda.h"

#include <algorithm>

#include "kernels/cuda/block_scan_cuda.h"
#include "kernels/cuda/launch_cuda.h"
#include "kernels/edges/tile_cuda.h"
#include "kernels/spec/compute_shape.h"
#include "storage/base/errors.h"

namespace ooc::cuda {
namespace {

constexpr std::int64_t kStripRows = 1024;  // that a block of threads fills
constexpr std::uint8_t kTrainSplit = 1;

struct Largest {
  __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    return a < b ? b : a;
  }
};
// Steps from row to row: by so many, or, with the bit, to a row.
constexpr std::uint32_t kAbsolute = 1u << 31;
struct Steps {
  __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    return (b & kAbsolute) != 0 ? b : a + b;
  }
};

struct Shared {
  ScanMemory<std::uint32_t> scan;
  TileHeader tile;
  std::uint32_t first_edge, end_edge;   // that the block of threads goes through
  std::uint32_t kept_before[kThreads];  // edges of this turn, by thread
};

// Goes through a tile's edges, one a thread at a time, in order; all threads of a block together.
class EdgeWalk {
 public:
  __device__ EdgeWalk(const TileView& tile, std::uint32_t first_edge, Shared& shared)
      : tile_(tile), edge_(first_edge + threadIdx.x), shared_(shared) {}

  __device__ bool is_live(std::uint32_t end_edge) const { return edge_ < end_edge; }
  __device__ std::uint32_t edge() const { return edge_; }
  // Of a thread's edge; of threads after the last one that row.
  __device__ std::uint32_t row(std::uint32_t end_edge) {
    return tile_.encoding == TileEncoding::kRuns ? row_of_run(end_edge) : row_of_pair(end_edge);
  }
  __device__ void go_on() { edge_ += kThreads; }

 private:
  __device__ std::uint32_t row_of_run(std::uint32_t end_edge) const {
    const std::uint32_t edge = edge_ < end_edge ? edge_ : end_edge - 1;
    std::uint32_t low = 0, high = tile_.row_count - 1;  // ends[high] > edge
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (tile_.ends[middle] > edge) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return tile_.rows[low];
  }

  __device__ std::uint32_t row_of_pair(std::uint32_t end_edge) {
    const std::uint32_t delta = edge_ < end_edge ? tile_.deltas[edge_] : 0;
    const std::uint32_t escape = delta == kRowEscape ? 1 : 0;
    const std::uint32_t escapes = block_scan(escape, Sum(), shared_.scan);
    const std::uint32_t all_escapes = shared_.scan.last;
    const std::uint32_t step =
        escape != 0 ? kAbsolute | tile_.escapes[escapes_ + escapes - 1] : delta;
    const std::uint32_t steps = block_scan(step, Steps(), shared_.scan);
    const std::uint32_t row = to_row(steps);
    row_ = to_row(shared_.scan.last);
    escapes_ += all_escapes;
    return row;
  }
  __device__ std::uint32_t to_row(std::uint32_t steps) const {
    return (steps & kAbsolute) != 0 ? steps & ~kAbsolute : row_ + steps;
  }

  const TileView& tile_;
  std::uint32_t edge_;
  std::uint32_t row_ = 0, escapes_ = 0;  // of pairs, before this turn's edges
  Shared& shared_;
};

__device__ bool is_taken(const IndexedSpan& span, std::uint32_t neighbour) {
  return span.splits == nullptr || span.splits[neighbour] == kTrainSplit;
}

__device__ std::int64_t rows_of(const IndexedWindow& window, std::int64_t block) {
  const std::int64_t rest = window.layout.vertices - block * window.layout.block_rows;
  return rest < window.layout.block_rows ? rest : window.layout.block_rows;
}

// Whether the vertex gets an edge from itself after the edges of the span that begins there.
__device__ bool gets_loop(const IndexedWindow& window, std::int64_t span_vertex,
                          std::int64_t vertex) {
  return window.self_loops != nullptr && vertex >= span_vertex &&
         vertex < span_vertex + window.layout.span_rows &&
         (window.self_loops[vertex / 64] >> (vertex % 64) & 1) == 0;
}

__device__ std::int64_t first_vertex_of(const IndexedWindow& window, std::int64_t span) {
  return (window.first_span + span) * window.layout.span_rows;
}

// counts[row] += its edges from one span: blockIdx.x is the destination block, blockIdx.y the span.
__global__ void __launch_bounds__(kThreads, 4)
    count_edges(IndexedWindow window, std::uint32_t first_in_panel, std::uint32_t* counts) {
  __shared__ Shared shared;
  const std::int64_t block = window.first_block + blockIdx.x;
  const IndexedSpan span = window.spans[blockIdx.y];
  counts += std::int64_t{blockIdx.x} * window.layout.block_rows;
  const std::int64_t vertex = block * window.layout.block_rows;
  const std::int64_t span_vertex = first_vertex_of(window, blockIdx.y);
  for (std::int64_t row = threadIdx.x; row < rows_of(window, block); row += kThreads) {
    if (gets_loop(window, span_vertex, vertex + row)) {
      atomicAdd(&counts[row], 1u);
    }
  }
  if (threadIdx.x == 0) {
    shared.tile = find_tile(span.chunk, first_in_panel + blockIdx.x);
  }
  __syncthreads();
  const TileView tile = attach(shared.tile, span.chunk, false);
  if (tile.encoding == TileEncoding::kRuns && span.splits == nullptr) {
    for (std::uint32_t i = threadIdx.x; i < tile.row_count; i += kThreads) {
      atomicAdd(&counts[tile.rows[i]], tile.ends[i] - (i > 0 ? tile.ends[i - 1] : 0));
    }
    return;
  }
  EdgeWalk walk(tile, 0, shared);
  for (std::uint32_t first = 0; first < tile.edge_count; first += kThreads, walk.go_on()) {
    const std::uint32_t row = walk.row(tile.edge_count);
    if (walk.is_live(tile.edge_count) && is_taken(span, tile.sources[walk.edge()])) {
      atomicAdd(&counts[row], 1u);
    }
  }
}

constexpr int kScanned = static_cast<int>(kIndexStrip) / static_cast<int>(kThreads);  // by a thread

// row_ptr[i] becomes the sum of what stands there in its strip up to i; strip_sums, of all of it.
__global__ void __launch_bounds__(kThreads, 4)
    sum_strips(std::int64_t count, std::uint32_t* row_ptr, std::uint32_t* strip_sums) {
  __shared__ ScanMemory<std::uint32_t> scan;
  const std::int64_t first = std::int64_t{blockIdx.x} * kIndexStrip + threadIdx.x * kScanned;
  std::uint32_t sums[kScanned], sum = 0;
#pragma unroll
  for (int i = 0; i < kScanned; ++i) {
    sum += first + i < count ? row_ptr[first + i] : 0;
    sums[i] = sum;
  }
  const std::uint32_t before = block_scan(sum, Sum(), scan) - sum;
#pragma unroll
  for (int i = 0; i < kScanned; ++i) {
    if (first + i < count) row_ptr[first + i] = before + sums[i];
  }
  if (threadIdx.x == 0) strip_sums[blockIdx.x] = scan.last;
}

// And of the strips before.
__global__ void __launch_bounds__(kThreads, 4)
    add_strips(std::int64_t count, std::uint32_t* row_ptr, const std::uint32_t* strip_sums) {
  __shared__ ScanMemory<std::uint32_t> scan;
  std::uint32_t sum = 0;
  for (unsigned strip = threadIdx.x; strip < blockIdx.x; strip += kThreads) {
    sum += strip_sums[strip];
  }
  block_scan(sum, Sum(), scan);
  const std::uint32_t before = scan.last;
  const std::int64_t end = (std::int64_t{blockIdx.x} + 1) * kIndexStrip;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kIndexStrip + threadIdx.x; i < end && i < count;
       i += kThreads) {
    row_ptr[i] += before;
  }
}

// Of the rows from first_row on: which of a tile's edges are theirs, or may be.
__device__ void find_edges(const TileView& tile, std::uint32_t first_row, std::uint32_t end_row,
                           Shared& shared) {
  shared.first_edge = 0;
  shared.end_edge = tile.edge_count;
  if (tile.encoding != TileEncoding::kRuns || tile.row_count == 0) return;
  const auto runs_before = [&](std::uint32_t row) {
    std::uint32_t low = 0, high = tile.row_count;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (tile.rows[middle] < row) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  const std::uint32_t first = runs_before(first_row), end = runs_before(end_row);
  shared.first_edge = first > 0 ? tile.ends[first - 1] : 0;
  shared.end_edge = end > 0 ? tile.ends[end - 1] : 0;
}

// Of a strip, by row: where its next edge goes, and where its edges from the span at hand begin.
struct Cursors {
  std::uint32_t at[kStripRows], span_begins[kStripRows];
  std::uint32_t rows[kThreads];  // of the edges that threads have at hand
};

// A strip of a block's rows, span after span.
class Strip {
 public:
  __device__ Strip(const IndexedWindow& window, const EdgeIndex& index, std::uint32_t first_row,
                   std::uint32_t rows, Cursors& cursors, Shared& shared)
      : window_(window),
        index_(index),
        first_row_(first_row),
        rows_(rows),
        cursors_(cursors),
        shared_(shared) {}

  __device__ void start(const std::uint32_t* row_ptr) {
    for (std::uint32_t row = threadIdx.x; row < rows_; row += kThreads) {
      cursors_.at[row] = cursors_.span_begins[row] = row_ptr[row];
    }
    __syncthreads();
  }

  // Those of the tile's edges whose rows are the strip's, from shared.first_edge on.
  __device__ void take(const TileView& tile, const IndexedSpan& span,
                       std::uint32_t span_in_window) {
    const std::uint32_t end_edge = shared_.end_edge;
    EdgeWalk walk(tile, shared_.first_edge, shared_);
    for (std::uint32_t first = shared_.first_edge; first < end_edge;
         first += kThreads, walk.go_on()) {
      const std::uint32_t row = walk.row(end_edge) - first_row_;  // beyond rows_: not the strip's
      const std::uint32_t edge = walk.edge();
      const std::uint32_t neighbour = walk.is_live(end_edge) ? tile.sources[edge] : 0;
      const bool taken = walk.is_live(end_edge) && row < rows_ && is_taken(span, neighbour);
      const std::uint32_t place = place_of(row, taken);
      if (taken) {
        put(row, place, span_in_window, neighbour);
        if (index_.weights != nullptr) index_.weights[place] = tile.weights[edge];
      }
    }
  }

  // And ends the span.
  __device__ void take_loops(std::uint32_t span_in_window, std::int64_t first_vertex) {
    const std::int64_t span_vertex = first_vertex_of(window_, span_in_window);
    for (std::uint32_t row = threadIdx.x; row < rows_; row += kThreads) {
      const std::int64_t vertex = first_vertex + row;
      if (gets_loop(window_, span_vertex, vertex)) {
        const std::uint32_t place = cursors_.at[row]++;
        put(row, place, span_in_window, static_cast<std::uint32_t>(vertex - span_vertex));
        if (index_.weights != nullptr) index_.weights[place] = 1.0f;
      }
      cursors_.span_begins[row] = cursors_.at[row];
    }
  }

 private:
  __device__ void put(std::uint32_t row, std::uint32_t place, std::uint32_t span,
                      std::uint32_t neighbour) {
    const bool begins_piece = (place - cursors_.span_begins[row]) % kPieceEdges == 0;
    index_.neighbours[place] = IndexedEdge(span, neighbour, begins_piece).word;
  }

  // Where a thread's edge goes: after those of its row that went before, in other turns and by
  // threads before it in this one. Moves the cursors of all rows on.
  __device__ std::uint32_t place_of(std::uint32_t row, bool taken) {
    const std::uint32_t thread = threadIdx.x;
    const std::uint32_t kept = block_scan(taken ? 1u : 0u, Sum(), shared_.scan);
    shared_.kept_before[thread] = kept - (taken ? 1 : 0);
    cursors_.rows[thread] = row;
    __syncthreads();
    const bool head = thread == 0 || cursors_.rows[thread - 1] != row;
    const bool tail = thread == kThreads - 1 || cursors_.rows[thread + 1] != row;
    const std::uint32_t first = block_scan(head ? thread : 0u, Largest(), shared_.scan);
    const std::uint32_t of_row = kept - shared_.kept_before[first];  // up to this thread
    const std::uint32_t place = row < rows_ ? cursors_.at[row] + of_row - 1 : 0;
    __syncthreads();
    if (tail && row < rows_) cursors_.at[row] += of_row;
    __syncthreads();
    return place;
  }

  const IndexedWindow& window_;
  const EdgeIndex& index_;
  const std::uint32_t first_row_, rows_;
  Cursors& cursors_;
  Shared& shared_;
};

// blockIdx.x is the strip of rows, blockIdx.y the destination block.
__global__ void __launch_bounds__(kThreads, 4)
    fill_rows(IndexedWindow window, EdgeIndex index, std::uint32_t first_in_panel,
              std::uint32_t strip_rows) {
  __shared__ Shared shared;
  __shared__ Cursors cursors;
  const std::int64_t block = window.first_block + blockIdx.y;
  const std::uint32_t first_row = blockIdx.x * strip_rows;
  const std::int64_t left = rows_of(window, block) - first_row;
  const auto rows = static_cast<std::uint32_t>(left < 0            ? 0
                                               : left < strip_rows ? left
                                                                   : strip_rows);
  const std::uint32_t* const row_ptr =
      index.row_ptr + std::int64_t{blockIdx.y} * window.layout.block_rows + first_row;
  Strip strip(window, index, first_row, rows, cursors, shared);
  strip.start(row_ptr);
  for (std::uint32_t i = 0; i < window.span_count; ++i) {
    const IndexedSpan& span = window.spans[i];
    if (threadIdx.x == 0) {
      shared.tile = find_tile(span.chunk, first_in_panel + blockIdx.y);
      find_edges(attach(shared.tile, span.chunk, false), first_row, first_row + rows, shared);
    }
    __syncthreads();
    const TileView tile = attach(shared.tile, span.chunk, index.weights != nullptr);
    strip.take(tile, span, i);
    __syncthreads();
    strip.take_loops(i, block * window.layout.block_rows + first_row);
    __syncthreads();
  }
}

}  // namespace

void build_edge_index(const IndexedWindow& window, const EdgeIndex& index, cudaStream_t stream) {
  OOC_CHECK(window.span_count > 0 && window.block_count > 0);
  OOC_CHECK(window.span_count <= kMostIndexedSpans && window.block_count < 65536);  // gridDim.y
  OOC_CHECK(index.weights == nullptr || window.layout.data.weights);
  const std::int64_t rows = window.rows();
  check(cudaMemsetAsync(index.row_ptr, 0,
                        static_cast<std::size_t>(rows + 1) * sizeof(std::uint32_t), stream),
        "zeroing");
  const auto blocks = static_cast<unsigned>(window.block_count);
  const auto first_in_panel =
      static_cast<std::uint32_t>(window.first_block % window.layout.panel_blocks);
  launch(count_edges, {dim3(blocks, static_cast<unsigned>(window.span_count)), dim3(kThreads)},
         stream, window, first_in_panel, index.row_ptr + 1);
  const LaunchShape by_strip{dim3(static_cast<unsigned>(ceil_div(rows, kIndexStrip))),
                             dim3(kThreads)};
  launch(sum_strips, by_strip, stream, rows, index.row_ptr + 1, index.strip_sums);
  launch(add_strips, by_strip, stream, rows, index.row_ptr + 1, index.strip_sums);
  const std::int64_t strip_rows = std::min(window.layout.block_rows, kStripRows);
  const auto strips = static_cast<unsigned>(window.layout.block_rows / strip_rows);
  launch(fill_rows, {dim3(strips, blocks), dim3(kThreads)}, stream, window, index, first_in_panel,
         static_cast<std::uint32_t>(strip_rows));
}

}  // namespace ooc::cuda
