#include "storage/import/edge_import.h"

#include <tbb/concurrent_queue.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <memory>

namespace ooc {
namespace {

constexpr std::int64_t kLeastBlockEdges = 64 << 10;
constexpr std::int64_t kMostBlockEdges = 8 << 20;

}  // namespace

void sort_edges(EdgeSource& source, std::span<const VertexIndex> new_ids, std::size_t data_bytes,
                std::int64_t memory_bytes, EdgeSorter& sorter, const Control& control) {
  const auto tokens = static_cast<std::size_t>(tbb::this_task_arena::max_concurrency()) + 1;
  const std::int64_t edge_bytes =
      static_cast<std::int64_t>(sizeof(Edge) + 2 * data_bytes) + sort_memory(data_bytes);
  const std::int64_t block_edges =
      std::clamp(memory_bytes / edge_bytes / static_cast<std::int64_t>(tokens), kLeastBlockEdges,
                 kMostBlockEdges);
  const auto total = static_cast<double>(source.known_edges().value_or(0));
  std::int64_t read = 0;
  tbb::concurrent_queue<std::shared_ptr<EdgeBlock>> idle;  // buffers to use again
  const auto next = [&](tbb::flow_control& flow) {
    std::shared_ptr<EdgeBlock> block;
    if (!idle.try_pop(block)) block = std::make_shared<EdgeBlock>();
    if (!source.next(block_edges, *block)) {
      flow.stop();
      return std::shared_ptr<EdgeBlock>();
    }
    read += static_cast<std::int64_t>(block->edges.size());
    control.step("sorting edges", static_cast<double>(read), total);
    return block;
  };
  const auto sort = [&](const std::shared_ptr<EdgeBlock>& block) {
    if (!new_ids.empty()) renumber_edges(block->edges, new_ids);
    sorter.add(block->number, block->edges, block->data);
    idle.push(block);
  };
  tbb::parallel_pipeline(
      tokens,
      tbb::make_filter<void, std::shared_ptr<EdgeBlock>>(tbb::filter_mode::serial_in_order, next) &
          tbb::make_filter<std::shared_ptr<EdgeBlock>, void>(tbb::filter_mode::parallel, sort));
  sorter.finish();
}

}  // namespace ooc
