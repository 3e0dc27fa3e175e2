// What edge chunks take in storage and in memory, by number, for whoever plans.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sched/plan/plan.h"

namespace ooc {

// The edge chunks of both directions.
class EdgeTable {
 public:
  explicit EdgeTable(const GraphCounts& graph);
  std::int64_t chunk_count() const { return layout_.chunk_count(); }
  std::int64_t chunk_bytes(Direction direction, std::int64_t chunk) const {
    return side(direction).bytes[static_cast<std::size_t>(chunk)];
  }
  // Of the chunks from `first` on.
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

 private:
  struct Side {
    std::vector<std::int64_t> bytes, memory, largest;  // by chunk; of those before; from it on
  };
  const Side& side(Direction direction) const {
    return sides_[static_cast<std::size_t>(direction)];
  }
  static Side make_side(const EdgeBytes& counts, std::int64_t chunks);

  const EdgeLayout& layout_;
  std::array<Side, 2> sides_;
};

}  // namespace ooc
