#include "sched/plan/passes/edge_table.h"

#include <algorithm>
#include <numeric>

#include "storage/io/block_file.h"

namespace ooc {

EdgeTable::EdgeTable(const GraphCounts& graph)
    : layout_(graph.edges),
      sides_{make_side(graph.in, layout_.chunk_count()),
             make_side(graph.symmetric ? EdgeBytes{} : graph.out, layout_.chunk_count())} {}

EdgeTable::Side EdgeTable::make_side(const EdgeBytes& counts, std::int64_t chunks) {
  Side side;
  side.bytes = counts.chunk_bytes;
  for (std::int64_t i = static_cast<std::int64_t>(side.bytes.size()); i < chunks; ++i) {
    const double share = static_cast<double>(counts.bytes) / static_cast<double>(chunks);
    const auto up_to = [&](std::int64_t chunk) {
      return chunk == chunks ? counts.bytes
                             : static_cast<std::int64_t>(share * static_cast<double>(chunk));
    };
    side.bytes.push_back(up_to(i + 1) - up_to(i));
  }
  side.memory.push_back(0);
  side.largest.assign(side.bytes.size() + 1, 0);
  for (const std::int64_t bytes : side.bytes) {
    const auto padded = static_cast<std::int64_t>(io_aligned(static_cast<std::uint64_t>(bytes)));
    side.memory.push_back(side.memory.back() + padded);
  }
  for (std::size_t i = side.bytes.size(); i-- > 0;) {
    side.largest[i] = std::max(side.largest[i + 1], side.memory[i + 1] - side.memory[i]);
  }
  return side;
}

std::int64_t EdgeTable::largest(Direction direction, std::int64_t first) const {
  return side(direction).largest[static_cast<std::size_t>(first)];
}

std::int64_t EdgeTable::memory(Direction direction, std::int64_t end_chunk) const {
  return side(direction).memory[static_cast<std::size_t>(end_chunk)];
}

std::int64_t EdgeTable::bytes(Direction direction, std::int64_t first) const {
  const std::vector<std::int64_t>& bytes = side(direction).bytes;
  return std::accumulate(bytes.begin() + first, bytes.end(), std::int64_t{0});
}

std::int64_t EdgeTable::chunks_within(Direction direction, std::int64_t bytes) const {
  const std::vector<std::int64_t>& memory = side(direction).memory;
  return std::upper_bound(memory.begin(), memory.end(), std::max<std::int64_t>(bytes, 0)) -
         memory.begin() - 1;
}

std::int64_t EdgeTable::sweep_bytes(Direction direction, std::int64_t dst_range_blocks,
                                    std::int64_t first) const {
  const std::vector<std::int64_t>& bytes = side(direction).bytes;
  const std::int64_t blocks = layout_.block_count(), panels = layout_.panel_count();
  std::vector<std::int64_t> dst_ranges;  // that touch a panel
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const std::int64_t begin = panel * layout_.panel_blocks;
    const std::int64_t last = std::min(begin + layout_.panel_blocks, blocks) - 1;
    dst_ranges.push_back(last / dst_range_blocks - begin / dst_range_blocks + 1);
  }
  std::int64_t sum = 0;
  for (std::int64_t chunk = first; chunk < static_cast<std::int64_t>(bytes.size()); ++chunk) {
    sum += bytes[static_cast<std::size_t>(chunk)] *
           dst_ranges[static_cast<std::size_t>(chunk % panels)];
  }
  return sum;
}

}  // namespace ooc
