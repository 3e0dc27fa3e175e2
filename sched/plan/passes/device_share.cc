// What of the rows and edges is a device's.
#include <algorithm>
#include <numeric>

#include "sched/plan/passes/passes.h"

namespace ooc {

BlockRange DeviceShare::blocks_of(const EdgeLayout& edges, const PlannedTensor& tensor) const {
  const TensorLayout& layout = tensor.layout;
  if (alone) return {0, layout.block_count()};
  const auto io_chunk_of = [&](std::int64_t block) {
    const std::int64_t row = std::min(block * edges.block_rows, edges.vertices);
    return BlockRange{
        tensor.kept.index(row) / layout.block_rows / tensor.io_chunk_blocks,
        ceil_div(ceil_div(tensor.kept.index(row), layout.block_rows), tensor.io_chunk_blocks)};
  };
  return {io_chunk_of(own.first).first * tensor.io_chunk_blocks,
          std::min(io_chunk_of(own.end).end * tensor.io_chunk_blocks, layout.block_count())};
}

// Where it stands in the ring is nothing that plans ask of it.
DeviceShare PassBuilder::share() const {
  if (options_.devices == 1) return {own_};
  return {own_, false, options_.ring_loaders, 0};
}

double PassBuilder::row_share() const {
  const EdgeLayout& edges = graph_.edges;
  const std::int64_t rows =
      std::min(own_.end * edges.block_rows, edges.vertices) - own_.first * edges.block_rows;
  return static_cast<double>(rows) / static_cast<double>(edges.vertices);
}

double PassBuilder::edge_share() const {
  if (graph_.block_edges.empty() || graph_.edges.edges == 0) return row_share();
  const auto first = graph_.block_edges.begin();
  const std::int64_t edges = std::accumulate(first + own_.first, first + own_.end, std::int64_t{0});
  return static_cast<double>(edges) / static_cast<double>(graph_.edges.edges);
}

}  // namespace ooc
