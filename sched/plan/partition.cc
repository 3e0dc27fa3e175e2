#include "sched/plan/partition.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/base/errors.h"

namespace ooc {
namespace {

// In-edges or vertices, of the first grains, up to each.
std::vector<double> prefix_sums(const GraphCounts& graph, DevicePartition partition,
                                std::int64_t grain) {
  const EdgeLayout& edges = graph.edges;
  const bool by_edges = partition == DevicePartition::kEqualEdges && !graph.block_edges.empty();
  std::vector<double> sums{0};
  for (std::int64_t block = 0; block < edges.block_count(); ++block) {
    if (block % grain == 0) sums.push_back(sums.back());
    const std::int64_t rows = std::min(edges.block_rows, edges.vertices - block * edges.block_rows);
    sums.back() +=
        static_cast<double>(by_edges ? graph.block_edges[static_cast<std::size_t>(block)] : rows);
  }
  return sums;
}

}  // namespace

std::vector<BlockRange> cut_blocks(const GraphCounts& graph, DevicePartition partition,
                                   std::int64_t devices, std::int64_t grain) {
  const std::int64_t blocks = graph.edges.block_count(), grains = ceil_div(blocks, grain);
  if (grains < devices) {
    throw UsageError(
        grain == 1
            ? fmt::format("{} devices for a graph of {} blocks of {} vertices", devices, blocks,
                          graph.edges.block_rows)
            : fmt::format("{} devices for a graph of {} blocks of {} vertices, of which {} lie in "
                          "a chunk of a file: it can be cut into {}",
                          devices, blocks, graph.edges.block_rows, grain, grains),
        "--devices", "give fewer devices, or import the graph with smaller --block-rows");
  }
  const std::vector<double> sums = prefix_sums(graph, partition, grain);
  std::vector<BlockRange> ranges;
  std::int64_t first = 0;
  for (std::int64_t device = 1; device <= devices; ++device) {
    const double wanted = sums.back() * static_cast<double>(device) / static_cast<double>(devices);
    // The nearest cut; each device has one grain at least.
    std::int64_t end = std::lower_bound(sums.begin(), sums.end(), wanted) - sums.begin();
    const auto at = [&](std::int64_t cut) { return sums[static_cast<std::size_t>(cut)]; };
    if (end > 0 && wanted - at(end - 1) < at(end) - wanted) --end;
    end = device == devices ? grains : std::clamp(end, first + 1, grains - (devices - device));
    ranges.push_back({first * grain, std::min(end * grain, blocks)});
    first = end;
  }
  return ranges;
}

}  // namespace ooc
