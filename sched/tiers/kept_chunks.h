// Edge chunks that stay in an arena, the device's or the host's: where they lie, and which are
// there.
#pragma once

#include <vector>

#include "sched/plan/plan.h"
#include "sched/tiers/residency.h"
#include "storage/base/errors.h"
#include "storage/format/edge_file.h"

namespace ooc {

// Where chunks lie never changes; their states are under a lock of the owner's.
class KeptChunks {
 public:
  // Of the arena's edge ranges the one of the direction, if there is one.
  KeptChunks(const std::vector<EdgeRange>& ranges, Direction direction, const EdgeFile& file,
             std::byte* arena) {
    for (const EdgeRange& range : ranges) {
      if (range.direction != direction) continue;
      OOC_CHECK(chunks_.empty() && range.first_chunk <= range.end_chunk);
      first_ = range.first_chunk;
      std::byte* at = arena + range.memory.offset;
      for (std::int64_t chunk = first_; chunk < range.end_chunk; ++chunk) {
        chunks_.push_back({at, Presence::kAbsent});
        const std::int64_t panel = chunk % file.layout().panel_count();
        if (panel < range.first_panel || panel >= range.end_panel) continue;  // nobody asks for it
        at += io_aligned(file.file().entry(static_cast<std::uint64_t>(chunk)).bytes);
      }
    }
  }

  struct Chunk {
    std::byte* data;
    Presence state;
  };
  // Null: it isn't kept.
  Chunk* find(std::int64_t chunk) {
    const bool kept = chunk >= first_ && chunk < first_ + std::ssize(chunks_);
    return kept ? &chunks_[static_cast<std::size_t>(chunk - first_)] : nullptr;
  }
  // After an epoch that was given up: what was coming is gone.
  void reset() {
    for (Chunk& chunk : chunks_) {
      if (chunk.state == Presence::kComing) chunk.state = Presence::kAbsent;
    }
  }

 private:
  std::int64_t first_ = 0;
  std::vector<Chunk> chunks_;  // from first_ on
};

}  // namespace ooc
