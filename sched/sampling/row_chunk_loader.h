// The I/O chunks of an input as the items of a stream: all slices of a chunk together.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sched/stream/item_stream.h"
#include "storage/stores/tensor_store.h"

namespace ooc {

class RowChunkLoader final : public ItemLoader {
 public:
  // `chunks`: in the order in which they are read. The store and the counter of bytes read outlive
  // it.
  RowChunkLoader(const TensorStore& store, std::vector<std::int64_t> chunks,
                 std::atomic<std::int64_t>& bytes_read);

  // Of memory that a chunk takes. Where the store is mapped, nobody touches it.
  static std::size_t slot_bytes(const TensorStore& store);
  static std::int64_t chunk_rows(const TensorStore& store);
  // That a chunk's reads move.
  static std::int64_t payload_bytes(const TensorStore& store, std::int64_t chunk);

  // Where the first row of an item's slice lies; `data`: the item's slot.
  const std::byte* rows(std::int64_t item, std::int64_t slice, const std::byte* data) const {
    return place(item, slice, const_cast<std::byte*>(data));
  }

  std::int64_t count() const override { return static_cast<std::int64_t>(chunks_.size()); }
  std::byte* place(std::int64_t) const override { return nullptr; }
  bool must_wait(std::int64_t) const override { return false; }
  void load(std::int64_t item, std::byte* data, ComingItem& coming) override;
  void arrived(std::int64_t) override {}
  bool complete(std::int64_t) const override { return true; }
  void released(std::int64_t item) override;

 private:
  std::byte* place(std::int64_t item, std::int64_t slice, std::byte* data) const;
  std::int64_t chunk(std::int64_t item) const { return chunks_[static_cast<std::size_t>(item)]; }

  const TensorStore& store_;
  std::vector<std::int64_t> chunks_;
  std::atomic<std::int64_t>& bytes_read_;
  std::vector<std::size_t> slot_offsets_;    // by slice, in a slot
  std::vector<std::size_t> mapped_offsets_;  // by slice, in the mapping
};

}  // namespace ooc
