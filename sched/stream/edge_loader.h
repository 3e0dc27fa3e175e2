// Edge chunks as the items of a stream, and what is kept of them in memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/spec/edge_program.h"
#include "sched/plan/plan.h"
#include "sched/stream/item_stream.h"
#include "sched/tiers/host_store.h"
#include "sched/tiers/kept_chunks.h"
#include "storage/stores/edge_chunks.h"

namespace ooc {

// One direction's chunks, and those of them that stay in the arena. Under the driver's lock.
class EdgeStore {
 public:
  // Chunks come from `io`, or, to a device, through the host's memory.
  EdgeStore(BlockIo& io, const EdgeFile& file, Direction direction, HostStore* host,
            HostClient* client, const std::vector<EdgeRange>& ranges, std::byte* arena);
  EdgeStore(const EdgeStore&) = delete;
  EdgeStore& operator=(const EdgeStore&) = delete;

  const ChunkStore& source() const {
    return host_ ? *host_ : static_cast<const ChunkStore&>(stored_);
  }
  const EdgeFile& file() const { return stored_.file(); }
  std::int64_t bytes(std::int64_t chunk) const {
    return static_cast<std::int64_t>(stored_.bytes(chunk));
  }
  // Where a chunk lies outside the arena, where it is used; null: it is used in the arena.
  std::byte* mapped(std::int64_t chunk) const {
    return host_ || bytes(chunk) == 0 ? nullptr : stored_.mapped(chunk);
  }
  bool is_mapped() const;
  KeptChunks::Chunk* kept(std::int64_t chunk) { return kept_.find(chunk); }
  // After an epoch that was given up.
  void reset() { kept_.reset(); }

 private:
  EdgeChunks stored_;
  std::unique_ptr<ChunkStore> host_;
  KeptChunks kept_;
};

struct EdgeItem {
  std::int64_t span = 0, panel = 0;
};

class EdgeLoader final : public ItemLoader {
 public:
  // Counts in `bytes_in` what comes into the arena. `host_tiles`: directories are read as chunks
  // come; else the source has checked what it gives.
  EdgeLoader(EdgeStore& store, std::vector<EdgeItem> items, std::atomic<std::int64_t>& bytes_in,
             bool host_tiles);

  // Of an item that is there and lies at `data`.
  EdgeWindow::Span span(std::int64_t item, const std::byte* data) const;

  std::int64_t count() const override { return static_cast<std::int64_t>(items_.size()); }
  std::byte* place(std::int64_t item) const override;
  void load(std::int64_t item, std::byte* data, ComingItem& coming) override;
  void arrived(std::int64_t item) override;
  bool must_wait(std::int64_t item) const override;
  bool complete(std::int64_t) const override { return true; }
  void released(std::int64_t item) override;

 private:
  std::int64_t chunk(std::int64_t item) const;
  void decode(std::int64_t item, const std::byte* data);

  EdgeStore& store_;
  std::vector<EdgeItem> items_;
  std::atomic<std::int64_t>& bytes_in_;
  bool host_tiles_;
  std::vector<std::vector<PanelTile>> tiles_;  // by item
};

}  // namespace ooc
