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
#include "sched/tiers/edge_source.h"
#include "sched/tiers/residency.h"

namespace ooc {

// One direction's chunks, and those of them that stay in the arena. Under the driver's lock.
class EdgeStore {
 public:
  explicit EdgeStore(std::unique_ptr<EdgeSource> source);
  // Chunks [0, end_chunk) lie in `memory`, each at a multiple of 4 KiB.
  void keep(std::int64_t end_chunk, std::byte* memory);

  EdgeSource& source() const { return *source_; }
  const EdgeFile& file() const { return source_->file(); }
  std::int64_t bytes(std::int64_t chunk) const {
    return static_cast<std::int64_t>(file().file().entry(static_cast<std::uint64_t>(chunk)).bytes);
  }
  // Chunks are used where they lie outside the arena.
  bool is_mapped() const;
  // Null: not kept.
  std::byte* place(std::int64_t chunk) const {
    return chunk < static_cast<std::int64_t>(places_.size()) ? places_[index(chunk)] : nullptr;
  }
  // Of a chunk that is kept.
  Presence state(std::int64_t chunk) const { return states_[index(chunk)]; }
  void set(std::int64_t chunk, Presence state) { states_[index(chunk)] = state; }
  // After an epoch that was given up.
  void reset();

 private:
  static std::size_t index(std::int64_t chunk) { return static_cast<std::size_t>(chunk); }

  std::unique_ptr<EdgeSource> source_;
  std::vector<std::byte*> places_;
  std::vector<Presence> states_;
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
