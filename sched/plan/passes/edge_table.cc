#include "sched/plan/passes/edge_table.h"

#include <algorithm>
#include <numeric>

#include "storage/io/block_file.h"

namespace ooc {

EdgeTable::EdgeTable(const GraphCounts& graph, const BlockRange& own)
    : layout_(graph.edges),
      own_(own),
      sides_{make_side(graph.in), make_side(graph.symmetric ? EdgeBytes{} : graph.out)} {}

EdgeTable::Side EdgeTable::make_side(const EdgeBytes& counts) const {
  const std::int64_t chunks = layout_.chunk_count();
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
  for (std::size_t i = side.bytes.size(); i-- > 0;) {
    const auto padded =
        static_cast<std::int64_t>(io_aligned(static_cast<std::uint64_t>(side.bytes[i])));
    side.largest[i] = std::max(side.largest[i + 1], padded);
  }
  for (std::int64_t i = 0; i < chunks; ++i) {
    const std::int64_t panel = i % layout_.panel_count();
    std::int64_t& bytes = side.bytes[static_cast<std::size_t>(i)];
    if (panel < first_panel() || panel >= end_panel()) bytes = 0;
    side.memory.push_back(side.memory.back() +
                          static_cast<std::int64_t>(io_aligned(static_cast<std::uint64_t>(bytes))));
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
  const std::int64_t panels = layout_.panel_count();
  std::vector<std::int64_t> dst_ranges(static_cast<std::size_t>(panels));  // that touch a panel
  for (std::int64_t panel = first_panel(); panel < end_panel(); ++panel) {
    const std::int64_t begin = std::max(panel * layout_.panel_blocks, own_.first) - own_.first;
    const std::int64_t last = std::min((panel + 1) * layout_.panel_blocks, own_.end) - own_.first;
    dst_ranges[static_cast<std::size_t>(panel)] =
        (last - 1) / dst_range_blocks - begin / dst_range_blocks + 1;
  }
  std::int64_t sum = 0;
  for (std::int64_t chunk = first; chunk < static_cast<std::int64_t>(bytes.size()); ++chunk) {
    sum += bytes[static_cast<std::size_t>(chunk)] *
           dst_ranges[static_cast<std::size_t>(chunk % panels)];
  }
  return sum;
}

}  // namespace ooc
