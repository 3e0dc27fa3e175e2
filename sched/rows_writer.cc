#include "sched/rows_writer.h"

#include <algorithm>
#include <utility>

#include "storage/errors.h"

namespace ooc {

RowsWriter::RowsWriter(Driver& driver, const TensorAccess& access, std::vector<std::byte*> slots)
    : driver_(driver),
      access_(access),
      end_slice_(access.tensor->layout.slice_count()),
      slots_(std::move(slots)) {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    free_.push_back(static_cast<int>(slot));
  }
}

RowsWriter::RowsWriter(Driver& driver, const TensorAccess& access)
    : driver_(driver), access_(access) {}

void RowsWriter::set_part(const RowsPlace& part, std::int64_t end_slice) {
  OOC_CHECK(idle() && units_.empty());
  part_ = part;
  first_slice_ = part.first_slice;
  end_slice_ = end_slice;
}

bool RowsWriter::ready(std::int64_t block) {
  const std::int64_t unit = unit_of(block);
  return units_.contains(unit) || open(unit);
}

bool RowsWriter::open(std::int64_t index) {
  const std::int64_t blocks = access_.tensor->unit_blocks;
  const std::int64_t first = index * blocks;
  const std::int64_t end = std::min(first + blocks, access_.tensor->layout.block_count());
  Unit unit;
  // A part may end inside a unit that is neither stored nor in a piece.
  unit.blocks_left = part_.data != nullptr ? std::min(end, part_.end_block) - first : end - first;
  const int piece = access_.piece(first);
  if (piece >= 0) {
    unit.place = access_.residency->place(piece);
  } else if (part_.data != nullptr) {
    unit.place = part_;
  } else {
    if (free_.empty()) return false;
    unit.slot = free_.back();
    free_.pop_back();
    unit.place = {slots_[static_cast<std::size_t>(unit.slot)], first, end, 0};
  }
  units_.emplace(index, unit);
  return true;
}

std::byte* RowsWriter::at(std::int64_t block, std::int64_t slice) const {
  return units_.at(unit_of(block)).place.at(*access_.tensor, block, slice);
}

void RowsWriter::finish(std::int64_t block) {
  const std::int64_t index = unit_of(block);
  if (--units_.at(index).blocks_left > 0) return;
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
  Unit& unit = units_.at(index);
  unit.writes = end_slice_ - first_slice_;
  writes_ += unit.writes;
  const std::int64_t block = index * access_.tensor->unit_blocks;
  for (std::int64_t slice = first_slice_; slice < end_slice_; ++slice) {
    *access_.bytes_out += unit_payload(*access_.tensor, index, slice);
    access_.store->write(index, slice, unit.place.at(*access_.tensor, block, slice),
                         driver_.expect([this, index] {
                           --writes_;
                           if (--units_.at(index).writes == 0) close(index);
                         }));
  }
}

void RowsWriter::close(std::int64_t index) {
  const Unit& unit = units_.at(index);
  if (unit.slot >= 0) free_.push_back(unit.slot);
  units_.erase(index);
}

}  // namespace ooc
