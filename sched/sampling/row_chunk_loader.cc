#include "sched/sampling/row_chunk_loader.h"

#include <algorithm>
#include <utility>

#include "storage/stores/scratch_tensor.h"

namespace ooc {
namespace {

std::uint64_t payload(const TensorStore& store, std::int64_t chunk, std::int64_t slice) {
  return io_chunk_payload_bytes(store.layout(), store.dtype(), store.io_chunk_blocks(), chunk,
                                slice);
}

}  // namespace

RowChunkLoader::RowChunkLoader(const TensorStore& store, std::vector<std::int64_t> chunks,
                               std::atomic<std::int64_t>& bytes_read)
    : store_(store), chunks_(std::move(chunks)), bytes_read_(bytes_read) {
  const std::int64_t last = ceil_div(store.layout().rows, chunk_rows(store)) - 1;
  std::size_t slot = 0, mapped = 0;
  for (std::int64_t slice = 0; slice < store.layout().slice_count(); ++slice) {
    slot_offsets_.push_back(slot);
    mapped_offsets_.push_back(mapped);
    slot += io_aligned(payload(store, 0, slice));
    mapped += static_cast<std::size_t>(last) * io_aligned(payload(store, 0, slice)) +
              io_aligned(payload(store, last, slice));
  }
}

std::size_t RowChunkLoader::slot_bytes(const TensorStore& store) {
  std::size_t bytes = 0;
  for (std::int64_t slice = 0; slice < store.layout().slice_count(); ++slice) {
    bytes += io_aligned(payload(store, 0, slice));
  }
  return bytes;
}

std::int64_t RowChunkLoader::chunk_rows(const TensorStore& store) {
  return store.io_chunk_blocks() * store.layout().block_rows;
}

std::int64_t RowChunkLoader::payload_bytes(const TensorStore& store, std::int64_t chunk) {
  std::int64_t bytes = 0;
  for (std::int64_t slice = 0; slice < store.layout().slice_count(); ++slice) {
    bytes += static_cast<std::int64_t>(payload(store, chunk, slice)) - store.zeros(chunk, slice);
  }
  return bytes;
}

std::byte* RowChunkLoader::place(std::int64_t item, std::int64_t slice, std::byte* data) const {
  const auto at = static_cast<std::size_t>(slice);
  if (store_.mapped() == nullptr) return data + slot_offsets_[at];
  return store_.mapped() + mapped_offsets_[at] +
         static_cast<std::size_t>(chunk(item)) * io_aligned(payload(store_, 0, slice));
}

void RowChunkLoader::load(std::int64_t item, std::byte* data, ComingItem& coming) {
  bytes_read_ += payload_bytes(store_, chunk(item));
  for (std::int64_t slice = 0; slice < store_.layout().slice_count(); ++slice) {
    std::byte* const rows = place(item, slice, data);
    std::function<void()> verify_and_decode;
    if (store_.needs_decoding(chunk(item), slice)) {
      verify_and_decode = [store = &store_, chunk = chunk(item), slice, rows] {
        store->verify_and_decode(chunk, slice, rows);
      };
    }
    store_.read(chunk(item), slice, rows, coming.read(std::move(verify_and_decode)));
  }
}

void RowChunkLoader::released(std::int64_t item) {
  if (store_.mapped() == nullptr) return;
  for (std::int64_t slice = 0; slice < store_.layout().slice_count(); ++slice) {
    store_.release(chunk(item), slice);
  }
}

}  // namespace ooc
