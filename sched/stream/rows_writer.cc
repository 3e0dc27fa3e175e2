#include "sched/stream/rows_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sched/plan/io_chunks.h"
#include "storage/base/errors.h"

namespace ooc {

RowsWriter::RowsWriter(Driver& driver, const TensorAccess& access, Slots slots)
    : driver_(driver),
      access_(access),
      end_slice_(access.tensor->layout.slice_count()),
      slots_(std::move(slots)) {}

RowsWriter::RowsWriter(Driver& driver, const TensorAccess& access)
    : driver_(driver), access_(access) {}

void RowsWriter::set_dst_range(const RowsPlace& dst_range, std::int64_t end_slice) {
  OOC_CHECK(idle() && io_chunks_.empty());
  dst_range_ = dst_range;
  first_slice_ = dst_range.first_slice;
  end_slice_ = end_slice;
}

bool RowsWriter::ready(std::int64_t row, std::int64_t end) {
  for (std::int64_t io_chunk = row / io_chunk_rows(); io_chunk * io_chunk_rows() < end;
       ++io_chunk) {
    if (!io_chunks_.contains(io_chunk) && !open(io_chunk)) return false;
  }
  return true;
}

bool RowsWriter::open(std::int64_t index) {
  const TensorLayout& layout = access_.tensor->layout;
  const std::int64_t first = index * access_.tensor->io_chunk_blocks;
  const std::int64_t end = std::min(first + access_.tensor->io_chunk_blocks, layout.block_count());
  IoChunk io_chunk;  // of accumulators, destination ranges hold whole ones
  io_chunk.rows_left = std::min(end * layout.block_rows, layout.rows) - first * layout.block_rows;
  const int range = access_.range(first);
  if (range >= 0) {
    io_chunk.place = access_.residency->place(range);
    if (dst_range_.data == nullptr && is_taken(io_chunk.place, index)) return false;
  } else if (dst_range_.data != nullptr) {
    io_chunk.place = dst_range_;
  } else {
    if (!slots_.has(1)) return false;
    io_chunk.slot = slots_.take();
    io_chunk.place = {io_chunk.slot, first, end, 0};
  }
  for_each_slice_in_dst_range(index, [&](std::span<const std::byte> memory) {
    held_[memory.data()] = memory.data() + memory.size();
  });
  io_chunks_.emplace(index, std::move(io_chunk));
  return true;
}

// Whether rows of an earlier pass still lie in the I/O chunk's place in a resident range.
bool RowsWriter::is_taken(const RowsPlace& place, std::int64_t io_chunk) const {
  for (std::int64_t slice = first_slice_; slice < end_slice_; ++slice) {
    if (access_.leaving->lie_in(place.io_chunk(*access_.tensor, io_chunk, slice))) return true;
  }
  return false;
}

// Calls visit(memory) for where the I/O chunk's slices lie in the destination range's memory, if
// they do.
template <class Visit>
void RowsWriter::for_each_slice_in_dst_range(std::int64_t index, Visit&& visit) const {
  const bool in_range = access_.range(index * access_.tensor->io_chunk_blocks) >= 0;
  if (dst_range_.data == nullptr || in_range) return;
  for (std::int64_t slice = first_slice_; slice < end_slice_; ++slice) {
    visit(dst_range_.io_chunk(*access_.tensor, index, slice));
  }
}

bool RowsWriter::contains(std::span<const std::byte> memory) const {
  const auto after = held_.lower_bound(memory.data() + memory.size());
  return after != held_.begin() && std::prev(after)->second > memory.data();
}

std::byte* RowsWriter::at(std::int64_t row, std::int64_t slice) const {
  return io_chunks_.at(row / io_chunk_rows()).place.at(*access_.tensor, row, slice);
}

void RowsWriter::finish(std::int64_t row, std::int64_t end) {
  while (row < end) {
    const std::int64_t io_chunk = row / io_chunk_rows();
    const std::int64_t rows = std::min((io_chunk + 1) * io_chunk_rows(), end) - row;
    if ((io_chunks_.at(io_chunk).rows_left -= rows) == 0) finish_io_chunk(io_chunk);
    row += rows;
  }
}

void RowsWriter::finish_io_chunk(std::int64_t index) {
  const std::int64_t first = index * access_.tensor->io_chunk_blocks;
  const int range = access_.range(first);
  if (range >= 0) {
    for (std::int64_t slice = first_slice_; slice < end_slice_; ++slice) {
      access_.residency->set(range, index, slice, Presence::kThere);
    }
  }
  const bool stored = access_.index >= 0 && first >= access_.tensor->stored_from_block;
  if (stored) {
    write(index);
  } else {
    close(index);
  }
}

void RowsWriter::write(std::int64_t index) {
  OOC_CHECK(access_.store != nullptr);
  io_chunks_.at(index).writes = end_slice_ - first_slice_;
  writes_ += end_slice_ - first_slice_;
  // What a resident range holds is used as it is.
  const bool packs =
      access_.store->packs() && access_.range(index * access_.tensor->io_chunk_blocks) < 0;
  for (std::int64_t slice = first_slice_; slice < end_slice_; ++slice) {
    access_.moved->out += io_chunk_payload(*access_.tensor, index, slice);
    std::byte* const rows = at(index * io_chunk_rows(), slice);
    const auto bytes = static_cast<std::size_t>(io_chunk_bytes(*access_.tensor, index, slice));
    access_.leaving->add({access_.index, index, slice}, {rows, bytes});
    if (packs) {
      pack(index, slice, rows);
    } else {
      submit(index, slice, rows, 0);
    }
  }
}

// Other rows may wait for the memory, the tasks in the queue for none.
void RowsWriter::pack(std::int64_t index, std::int64_t slice, std::byte* rows) {
  const auto zeros = std::make_shared<std::int64_t>(0);
  driver_.run([store = access_.store, index, slice, rows,
               zeros] { *zeros = store->pack(index, slice, rows); },
              [self = shared_from_this(), index, slice, rows, zeros] {
                self->submit(index, slice, rows, *zeros);
              },
              Turn::kNext);
}

void RowsWriter::submit(std::int64_t index, std::int64_t slice, std::byte* rows,
                        std::int64_t zeros) {
  access_.moved->zeros_out += zeros;
  access_.store->write(
      index, slice, rows, zeros,
      driver_.expect([self = shared_from_this(), index, slice] { self->wrote(index, slice); }));
}

void RowsWriter::wrote(std::int64_t index, std::int64_t slice) {
  --writes_;
  access_.leaving->remove({access_.index, index, slice});
  if (--io_chunks_.at(index).writes == 0) close(index);
  driver_.wake();  // reads may wait for the memory, or for these rows
}

void RowsWriter::close(std::int64_t index) {
  const IoChunk& io_chunk = io_chunks_.at(index);
  if (io_chunk.slot != nullptr) slots_.give_back(io_chunk.slot);
  for_each_slice_in_dst_range(
      index, [&](std::span<const std::byte> memory) { held_.erase(memory.data()); });
  io_chunks_.erase(index);
}

}  // namespace ooc
