#include "sched/stream/rows_loader.h"

#include <algorithm>
#include <iterator>

#include "kernels/device/host_buffer.h"
#include "sched/plan/io_chunks.h"
#include "storage/base/errors.h"

namespace ooc {

void RowsItems::add(const RowsItem& run) {
  runs.push_back({run, count});
  count += ceil_div(run.end_block - run.first_block, item_blocks);
}

RowsItem RowsItems::at(std::int64_t item) const {
  const auto run = std::prev(
      std::upper_bound(runs.begin(), runs.end(), item,
                       [](std::int64_t wanted, const Run& of) { return wanted < of.first_item; }));
  RowsItem found = run->all;
  const std::int64_t place = item - run->first_item;
  found.first_block +=
      (order.empty() ? place : order[static_cast<std::size_t>(place)]) * item_blocks;
  found.end_block = std::min(found.first_block + item_blocks, run->all.end_block);
  return found;
}

RowsLoader::RowsLoader(const TensorAccess& access, RowsItems items, RowsPlace dst_range)
    : access_(access), items_(std::move(items)), dst_range_(dst_range) {}

template <class Visit>
void RowsLoader::for_each_io_chunk(const RowsItem& item, Visit&& visit) const {
  const std::int64_t blocks = access_.tensor->io_chunk_blocks;
  for (std::int64_t slice = item.first_slice; slice < item.end_slice; ++slice) {
    for (std::int64_t block = item.first_block; block < item.end_block; block += blocks) {
      visit(block / blocks, slice);
    }
  }
}

RowsLoader::~RowsLoader() {
  if (dst_range_.data == nullptr || !access_.is_mapped()) return;
  for (std::int64_t item = 0; item < loaded_; ++item) released(item);
}

void RowsLoader::released(std::int64_t index) {
  if (!access_.is_mapped()) return;
  const RowsItem item = items_.at(index);
  if (access_.range(item.first_block) >= 0) return;
  for_each_io_chunk(item, [&](std::int64_t io_chunk, std::int64_t slice) {
    access_.store->release(io_chunk, slice);
  });
}

std::size_t RowsLoader::item_bytes(std::int64_t index) const {
  const RowsItem item = items_.at(index);
  return static_cast<std::size_t>(rows_bytes(*access_.tensor, item.first_block, item.end_block,
                                             item.first_slice, item.end_slice));
}

void RowsLoader::count_passed_on(std::int64_t index) const {
  for_each_io_chunk(items_.at(index), [&](std::int64_t io_chunk, std::int64_t slice) {
    access_.moved->between_devices += io_chunk_payload(*access_.tensor, io_chunk, slice);
  });
}

RowsPlace RowsLoader::rows(std::int64_t index, std::byte* data) const {
  return access_.is_mapped() ? access_.mapped : arena_rows(items_.at(index), data);
}

RowsPlace RowsLoader::arena_rows(const RowsItem& item, std::byte* data) const {
  const int range = access_.range(item.first_block);
  if (range >= 0) return access_.residency->place(range);
  if (dst_range_.data != nullptr) return dst_range_;
  return {data, item.first_block, item.end_block, item.first_slice};
}

std::byte* RowsLoader::place(std::int64_t index) const {
  const RowsItem item = items_.at(index);
  const bool elsewhere = dst_range_.data != nullptr || access_.range(item.first_block) >= 0;
  if (!elsewhere) return nullptr;
  const std::int64_t row = item.first_block * access_.tensor->layout.block_rows;
  return rows(index, nullptr).at(*access_.tensor, row, item.first_slice);
}

// What another item brings is waited for I/O chunk by I/O chunk: complete(). Without rows that are
// leaving there is nothing to wait for: sums lie apart from what a pass reads.
bool RowsLoader::must_wait(std::int64_t index) const {
  if (access_.leaving->count() == 0) return false;
  const RowsItem item = items_.at(index);
  const int range = access_.range(item.first_block);
  const bool placed = range >= 0 || dst_range_.data != nullptr;
  const RowsPlace place = arena_rows(item, nullptr);
  bool wait = false;
  for_each_io_chunk(item, [&](std::int64_t io_chunk, std::int64_t slice) {
    const bool here =
        range >= 0 && access_.residency->state(range, io_chunk, slice) != Presence::kAbsent;
    if (here) return;
    wait |= access_.leaving->has({access_.index, io_chunk, slice});
    wait |= placed && access_.hazards->busy(place.io_chunk(*access_.tensor, io_chunk, slice));
  });
  return wait;
}

void RowsLoader::load(std::int64_t index, std::byte* data, ComingItem& coming) {
  const RowsItem item = items_.at(index);
  const int range = access_.range(item.first_block);
  loaded_ = index + 1;
  const RowsPlace place = rows(index, data), in_arena = arena_rows(item, data);
  for_each_io_chunk(item, [&](std::int64_t io_chunk, std::int64_t slice) {
    if (range >= 0) {
      if (access_.residency->state(range, io_chunk, slice) != Presence::kAbsent) return;
      access_.residency->set(range, io_chunk, slice, Presence::kComing);
      coming_[index].emplace_back(io_chunk, slice);
    }
    OOC_CHECK(access_.store != nullptr);
    if (access_.is_mapped()) drop_pages(in_arena.io_chunk(*access_.tensor, io_chunk, slice));
    access_.moved->in += io_chunk_payload(*access_.tensor, io_chunk, slice);
    access_.moved->zeros_in += access_.store->zeros(io_chunk, slice);
    std::byte* const rows = place.at(*access_.tensor, first_row(io_chunk), slice);
    std::function<void()> verify_and_decode;
    if (access_.store->needs_decoding(io_chunk, slice)) {
      verify_and_decode = [store = access_.store, io_chunk, slice, rows] {
        store->verify_and_decode(io_chunk, slice, rows);
      };
    }
    access_.store->read(io_chunk, slice, rows, coming.read(std::move(verify_and_decode)));
  });
}

void RowsLoader::arrived(std::int64_t index) {
  const auto coming = coming_.find(index);
  if (coming == coming_.end()) return;
  const int range = access_.range(items_.at(index).first_block);
  for (const auto& [io_chunk, slice] : coming->second) {
    access_.residency->set(range, io_chunk, slice, Presence::kThere);
  }
  coming_.erase(coming);
}

bool RowsLoader::complete(std::int64_t index) const {
  const RowsItem item = items_.at(index);
  const int range = access_.range(item.first_block);
  if (range < 0) return true;
  bool complete = true;
  for_each_io_chunk(item, [&](std::int64_t io_chunk, std::int64_t slice) {
    complete &= access_.residency->state(range, io_chunk, slice) == Presence::kThere;
  });
  return complete;
}

}  // namespace ooc
