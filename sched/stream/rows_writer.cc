#include "sched/stream/rows_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "storage/base/errors.h"

namespace ooc {

RowsWriter::RowsWriter(Driver& driver, const TensorAccess& access, Slots slots)
    : driver_(driver),
      access_(access),
      end_slice_(access.tensor->layout.slice_count()),
      slots_(std::move(slots)) {}

RowsWriter::RowsWriter(Driver& driver, const TensorAccess& access)
    : driver_(driver), access_(access) {}

void RowsWriter::set_part(const RowsPlace& part, std::int64_t end_slice) {
  OOC_CHECK(idle() && units_.empty());
  part_ = part;
  first_slice_ = part.first_slice;
  end_slice_ = end_slice;
}

bool RowsWriter::ready(std::int64_t row, std::int64_t end) {
  for (std::int64_t unit = row / unit_rows(); unit * unit_rows() < end; ++unit) {
    if (!units_.contains(unit) && !open(unit)) return false;
  }
  return true;
}

bool RowsWriter::open(std::int64_t index) {
  const TensorLayout& layout = access_.tensor->layout;
  const std::int64_t first = index * access_.tensor->unit_blocks;
  const std::int64_t end = std::min(first + access_.tensor->unit_blocks, layout.block_count());
  Unit unit;  // of accumulators, parts hold whole ones
  unit.rows_left = std::min(end * layout.block_rows, layout.rows) - first * layout.block_rows;
  const int piece = access_.piece(first);
  if (piece >= 0) {
    unit.place = access_.residency->place(piece);
    if (part_.data == nullptr && is_taken(unit.place, index)) return false;
  } else if (part_.data != nullptr) {
    unit.place = part_;
  } else {
    if (!slots_.has(end_slice_)) return false;
    while (std::ssize(unit.slots) < end_slice_) unit.slots.push_back(slots_.take());
    unit.place = {nullptr, first, end, 0};
  }
  for_each_slice_in_part(index, [&](std::span<const std::byte> memory) {
    held_[memory.data()] = memory.data() + memory.size();
  });
  units_.emplace(index, std::move(unit));
  return true;
}

// Whether rows of an earlier pass still lie in the unit's place in a piece.
bool RowsWriter::is_taken(const RowsPlace& place, std::int64_t unit) const {
  for (std::int64_t slice = first_slice_; slice < end_slice_; ++slice) {
    if (access_.leaving->lie_in(place.unit(*access_.tensor, unit, slice))) return true;
  }
  return false;
}

// Calls visit(memory) for where the unit's slices lie in the part's memory, if they do.
template <class Visit>
void RowsWriter::for_each_slice_in_part(std::int64_t index, Visit&& visit) const {
  const bool in_piece = access_.piece(index * access_.tensor->unit_blocks) >= 0;
  if (part_.data == nullptr || in_piece) return;
  for (std::int64_t slice = first_slice_; slice < end_slice_; ++slice) {
    visit(part_.unit(*access_.tensor, index, slice));
  }
}

bool RowsWriter::holds(std::span<const std::byte> memory) const {
  const auto behind = held_.lower_bound(memory.data() + memory.size());
  return behind != held_.begin() && std::prev(behind)->second > memory.data();
}

std::byte* RowsWriter::at(std::int64_t row, std::int64_t slice) const {
  const Unit& unit = units_.at(row / unit_rows());
  RowsPlace place = unit.place;
  if (!unit.slots.empty()) {
    place.data = unit.slots[static_cast<std::size_t>(slice)];
    place.first_slice = slice;
  }
  return place.at(*access_.tensor, row, slice);
}

void RowsWriter::finish(std::int64_t row, std::int64_t end) {
  while (row < end) {
    const std::int64_t unit = row / unit_rows();
    const std::int64_t rows = std::min((unit + 1) * unit_rows(), end) - row;
    if ((units_.at(unit).rows_left -= rows) == 0) finish_unit(unit);
    row += rows;
  }
}

void RowsWriter::finish_unit(std::int64_t index) {
  const std::int64_t first = index * access_.tensor->unit_blocks;
  const int piece = access_.piece(first);
  if (piece >= 0) {
    for (std::int64_t slice = first_slice_; slice < end_slice_; ++slice) {
      access_.residency->set(piece, index, slice, Residency::State::kThere);
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
  units_.at(index).writes = end_slice_ - first_slice_;
  writes_ += end_slice_ - first_slice_;
  // What a piece holds is used as it is.
  const bool packs =
      access_.store->packs() && access_.piece(index * access_.tensor->unit_blocks) < 0;
  for (std::int64_t slice = first_slice_; slice < end_slice_; ++slice) {
    access_.moved->out += unit_payload(*access_.tensor, index, slice);
    std::byte* const rows = at(index * unit_rows(), slice);
    const auto bytes = static_cast<std::size_t>(unit_bytes(*access_.tensor, index, slice));
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
  Unit& unit = units_.at(index);
  if (!unit.slots.empty()) {
    slots_.give_back(std::exchange(unit.slots[static_cast<std::size_t>(slice)], nullptr));
  }
  if (--unit.writes == 0) close(index);
  driver_.wake();  // reads may wait for the memory, or for these rows
}

void RowsWriter::close(std::int64_t index) {
  const Unit& unit = units_.at(index);
  for (std::byte* slot : unit.slots) {
    if (slot != nullptr) slots_.give_back(slot);
  }
  for_each_slice_in_part(index,
                         [&](std::span<const std::byte> memory) { held_.erase(memory.data()); });
  units_.erase(index);
}

}  // namespace ooc
