// What edge chunks take in storage and in memory, by number, for whoever plans.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sched/plan/plan.h"

namespace ooc {

// The edge chunks of both directions into a device's own blocks: the others take nothing.
class EdgeTable {
 public:
  EdgeTable(const GraphCounts& graph, const BlockRange& own);
  explicit EdgeTable(const GraphCounts& graph) : EdgeTable(graph, {0, graph.edges.block_count()}) {}
  std::int64_t chunk_count() const { return layout_.chunk_count(); }
  std::int64_t chunk_bytes(Direction direction, std::int64_t chunk) const {
    return side(direction).bytes[static_cast<std::size_t>(chunk)];
  }
  // Of all devices' chunks from `first` on.
  std::int64_t largest(Direction direction, std::int64_t first) const;
  // What the first ones take in memory.
  std::int64_t memory(Direction direction, std::int64_t end_chunk) const;
  // The most of the first ones that so much memory takes.
  std::int64_t chunks_within(Direction direction, std::int64_t bytes) const;
  // What one sweep over all destination ranges reads of the chunks from `first` on.
  std::int64_t sweep_bytes(Direction direction, std::int64_t dst_range_blocks,
                           std::int64_t first) const;
  // Of the chunks from `first` on.
  std::int64_t bytes(Direction direction, std::int64_t first) const;
  const BlockRange& own() const { return own_; }
  // That some of the own blocks are in.
  std::int64_t first_panel() const { return own_.first / layout_.panel_blocks; }
  std::int64_t end_panel() const { return ceil_div(own_.end, layout_.panel_blocks); }

 private:
  struct Side {
    std::vector<std::int64_t> bytes, memory, largest;  // by chunk; of those before; from it on
  };
  const Side& side(Direction direction) const {
    return sides_[static_cast<std::size_t>(direction)];
  }
  Side make_side(const EdgeBytes& counts) const;

  const EdgeLayout& layout_;
  BlockRange own_;
  std::array<Side, 2> sides_;
};

}  // namespace ooc
