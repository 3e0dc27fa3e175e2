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

RowsWriter::RowsWriter(Driver& driver, const TensorAccess& access, const RowsPlace& dst_range,
                       std::int64_t end_slice)
    : driver_(driver),
      access_(access),
      first_slice_(dst_range.first_slice),
      end_slice_(end_slice),
      dst_range_(dst_range) {}

bool RowsWriter::ready(std::int64_t row, std::int64_t end) {
  for (std::int64_t io_chunk = row / io_chunk_rows(); io_chunk * io_chunk_rows() < end;
       ++io_chunk) {
    if (!io_chunks_.contains(io_chunk) && !open(io_chunk)) return false;
  }
  return true;
}

// A place in the destination range's memory is in use from then on; one in a resident range is the
// plan's to share.
bool RowsWriter::open(std::int64_t index) {
  const TensorLayout& layout = access_.tensor->layout;
  const std::int64_t first = index * access_.tensor->io_chunk_blocks;
  const std::int64_t end = std::min(first + access_.tensor->io_chunk_blocks, layout.block_count());
  IoChunk io_chunk;  // of accumulators, destination ranges hold whole ones
  io_chunk.rows_left = std::min(end * layout.block_rows, layout.rows) - first * layout.block_rows;
  if (range(index) < 0 && dst_range_.data == nullptr) {
    if (!slots_.has_one()) return false;
    io_chunk.slot = slots_.take();
  } else {
    if (is_busy(index)) return false;
    for (std::int64_t s = first_slice_; in_dst_range(index) && s < end_slice_; ++s) {
      access_.hazards->begin(memory_of(index, s));
    }
  }
  io_chunks_.emplace(index, io_chunk);
  return true;
}

// Whether other rows lie in the I/O chunk's place: of an earlier pass, or of a destination range
// before.
bool RowsWriter::is_busy(std::int64_t io_chunk) const {
  for (std::int64_t slice = first_slice_; slice < end_slice_; ++slice) {
    if (access_.hazards->busy(memory_of(io_chunk, slice))) return true;
  }
  return false;
}

RowsPlace RowsWriter::place_of(std::int64_t io_chunk) const {
  const int in = range(io_chunk);
  if (in >= 0) return access_.residency->place(in);
  if (dst_range_.data != nullptr) return dst_range_;
  const std::int64_t first = io_chunk * access_.tensor->io_chunk_blocks;
  return {io_chunks_.at(io_chunk).slot, first,
          std::min(first + access_.tensor->io_chunk_blocks, access_.tensor->layout.block_count()),
          0};
}

std::span<std::byte> RowsWriter::memory_of(std::int64_t io_chunk, std::int64_t slice) const {
  return place_of(io_chunk).io_chunk(*access_.tensor, io_chunk, slice);
}

std::byte* RowsWriter::at(std::int64_t row, std::int64_t slice) const {
  return place_of(row / io_chunk_rows()).at(*access_.tensor, row, slice);
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
  const int in = range(index);
  for (std::int64_t slice = first_slice_; in >= 0 && slice < end_slice_; ++slice) {
    access_.residency->set(in, index, slice, Presence::kThere);
  }
  const bool stored =
      access_.index >= 0 && index * access_.tensor->io_chunk_blocks >= access_.stored_from_block;
  if (stored) {
    write(index);
  } else {
    close(index);
  }
}

void RowsWriter::write(std::int64_t index) {
  OOC_CHECK(access_.store != nullptr);
  io_chunks_.at(index).writes = end_slice_ - first_slice_;
  // What a resident range holds is used as it is.
  const bool packs = access_.store->packs() && range(index) < 0;
  for (std::int64_t slice = first_slice_; slice < end_slice_; ++slice) {
    access_.moved->out += io_chunk_payload(*access_.tensor, index, slice);
    const std::span<std::byte> rows = memory_of(index, slice);
    access_.leaving->add({access_.index, index, slice});
    if (!in_dst_range(index)) access_.hazards->begin(rows);
    if (packs) {
      pack(index, slice, rows.data());
    } else {
      submit(index, slice, rows.data(), 0);
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
  access_.leaving->remove({access_.index, index, slice});
  if (!in_dst_range(index)) access_.hazards->end(memory_of(index, slice).data());
  if (--io_chunks_.at(index).writes == 0) close(index);
  driver_.wake();  // reads may wait for the memory, or for these rows
}

void RowsWriter::close(std::int64_t index) {
  const IoChunk& io_chunk = io_chunks_.at(index);
  if (io_chunk.slot != nullptr) slots_.give_back(io_chunk.slot);
  for (std::int64_t slice = first_slice_; in_dst_range(index) && slice < end_slice_; ++slice) {
    access_.hazards->end(memory_of(index, slice).data());
  }
  io_chunks_.erase(index);
}

}  // namespace ooc
