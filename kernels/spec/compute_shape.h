// How a device wants its work, for whoever plans and whoever hands it out.
#pragma once

#include <cstdint>

#include "storage/format/edge_layout.h"

namespace ooc {

struct ComputeShape {
  // Kernels are done when their call returns, and many threads may run them at once.
  bool runs_inline = true;
  // The host reads the directories of edge chunks, and kernels get tiles.
  bool host_tiles = true;
  // Edges are sorted by row before they are folded: in the scratch of edge programs
  // (edge_index_bytes()).
  bool indexes_edges = false;
  // Row groups that a call has at most, each with scratch of its own; 0: a call has one, and every
  // worker scratch.
  std::int64_t lanes = 0;
  std::int64_t most_group_rows = 2048;  // of a row group
  double launch_seconds = 0;            // what a kernel takes at least
};

// Of the CUDA backend.
inline constexpr ComputeShape kCudaShape{.runs_inline = false,
                                         .host_tiles = false,
                                         .indexes_edges = true,
                                         .lanes = 128,
                                         .most_group_rows = 4096,
                                         .launch_seconds = 4e-6};

inline constexpr std::int64_t kIndexAlignment = 256;
// Rows whose edges are indexed at once at most, and those that are counted together.
inline constexpr std::int64_t kMostIndexedRows = 8 << 20, kIndexStrip = 4096;

// Edges of chunks of so many bytes, at most.
inline std::int64_t most_edges(const EdgeData& data, std::int64_t chunk_bytes) {
  constexpr std::int64_t kSourceBytes = 2;
  return chunk_bytes / (kSourceBytes + static_cast<std::int64_t>(data.bytes()));
}
// What an index of these chunks takes, whose edges end in so many rows: where rows begin, sums of
// strips, neighbours and weights (kernels/edges/edge_index_cuda.h). A row may get an edge from
// itself.
inline std::int64_t edge_index_bytes(const EdgeData& data, std::int64_t rows,
                                     std::int64_t chunk_bytes) {
  const auto words = [](std::int64_t count) { return round_up(4 * count, kIndexAlignment); };
  const std::int64_t edges = words(most_edges(data, chunk_bytes) + rows);
  return words(rows + 1) + words(ceil_div(rows, kIndexStrip)) + (data.weights ? 2 : 1) * edges;
}

// Of spans whose chunks take bytes_of(span): the end of those from `first` on that are indexed at
// once in so much scratch, as the CUDA backend does and plans count; at least one.
inline constexpr std::int64_t kMostIndexedSpans = 1024;
template <class BytesOf>
std::int64_t end_of_index(const EdgeData& data, std::int64_t rows, std::int64_t scratch_bytes,
                          std::int64_t first, std::int64_t end, BytesOf&& bytes_of) {
  std::int64_t at = first, bytes = 0;
  for (; at < end && at - first < kMostIndexedSpans; ++at) {
    bytes += bytes_of(at);
    if (at > first && edge_index_bytes(data, rows, bytes) > scratch_bytes) break;
  }
  return at;
}

}  // namespace ooc
