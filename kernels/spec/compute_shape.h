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
};

// Of the CUDA backend.
inline constexpr ComputeShape kCudaShape{.runs_inline = false,
                                         .host_tiles = false,
                                         .indexes_edges = true,
                                         .lanes = 64,
                                         .most_group_rows = 4096};

inline constexpr std::int64_t kIndexAlignment = 256;

// Edges of chunks of so many bytes, at most.
inline std::int64_t most_edges(const EdgeData& data, std::int64_t chunk_bytes) {
  constexpr std::int64_t kSourceBytes = 2;
  return chunk_bytes / (kSourceBytes + static_cast<std::int64_t>(data.bytes()));
}
// What an index of these chunks takes, whose edges end in so many rows: where rows begin,
// neighbours and weights (kernels/edges/edge_index_cuda.h). A row may get an edge from itself.
inline std::int64_t edge_index_bytes(const EdgeData& data, std::int64_t rows,
                                     std::int64_t chunk_bytes) {
  const auto words = [](std::int64_t count) { return round_up(4 * count, kIndexAlignment); };
  const std::int64_t edges = words(most_edges(data, chunk_bytes) + rows);
  return words(rows + 1) + (data.weights ? 2 : 1) * edges;
}

}  // namespace ooc
