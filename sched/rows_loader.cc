#include "sched/rows_loader.h"

#include <algorithm>

#include "storage/errors.h"

namespace ooc {

RowsLoader::RowsLoader(const TensorAccess& access, std::vector<RowsItem> items, RowsPlace part)
    : access_(access), items_(std::move(items)), part_(part), loaded_(items_.size()) {}

template <class Visit>
void RowsLoader::for_each_unit(const RowsItem& item, Visit&& visit) const {
  const std::int64_t blocks = access_.tensor->unit_blocks;
  for (std::int64_t slice = item.first_slice; slice < item.end_slice; ++slice) {
    for (std::int64_t block = item.first_block; block < item.end_block; block += blocks) {
      visit(block / blocks, slice);
    }
  }
}

RowsPlace RowsLoader::rows(std::int64_t index, std::byte* data) const {
  const RowsItem& item = at(index);
  const int piece = access_.piece(item.first_block);
  if (piece >= 0) return access_.residency->place(piece);
  if (part_.data != nullptr) return part_;
  return {data, item.first_block, item.end_block, item.first_slice};
}

std::byte* RowsLoader::place(std::int64_t index) const {
  const RowsItem& item = at(index);
  const bool elsewhere = part_.data != nullptr || access_.piece(item.first_block) >= 0;
  if (!elsewhere) return nullptr;
  const std::int64_t row = item.first_block * access_.tensor->layout.block_rows;
  return rows(index, nullptr).at(*access_.tensor, row, item.first_slice);
}

void RowsLoader::load(std::int64_t index, std::byte* data,
                      const std::function<BlockCompletion()>& completion) {
  const RowsItem& item = at(index);
  const int piece = access_.piece(item.first_block);
  const RowsPlace place = rows(index, data);
  for_each_unit(item, [&](std::int64_t unit, std::int64_t slice) {
    if (piece >= 0) {
      if (access_.residency->state(piece, unit, slice) != Residency::State::kAbsent) return;
      access_.residency->set(piece, unit, slice, Residency::State::kComing);
    }
    OOC_CHECK(access_.store != nullptr);
    loaded_[static_cast<std::size_t>(index)].emplace_back(unit, slice);
    *access_.bytes_in += unit_payload(*access_.tensor, unit, slice);
    access_.store->read(unit, slice, place.at(*access_.tensor, first_row(unit), slice),
                        completion());
  });
}

bool RowsLoader::needs_check(std::int64_t index) const {
  const auto& loaded = loaded_[static_cast<std::size_t>(index)];
  return std::any_of(loaded.begin(), loaded.end(), [&](const auto& unit) {
    return access_.store->needs_verify(unit.first, unit.second);
  });
}

void RowsLoader::check(std::int64_t index, const std::byte* data) {
  const RowsPlace place = rows(index, const_cast<std::byte*>(data));
  for (const auto& [unit, slice] : loaded_[static_cast<std::size_t>(index)]) {
    access_.store->verify(unit, slice, place.at(*access_.tensor, first_row(unit), slice));
  }
}

void RowsLoader::arrived(std::int64_t index) {
  auto& loaded = loaded_[static_cast<std::size_t>(index)];
  const int piece = access_.piece(at(index).first_block);
  if (piece >= 0) {
    for (const auto& [unit, slice] : loaded) {
      access_.residency->set(piece, unit, slice, Residency::State::kThere);
    }
  }
  loaded.clear();
}

bool RowsLoader::complete(std::int64_t index) const {
  const RowsItem& item = at(index);
  const int piece = access_.piece(item.first_block);
  if (piece < 0) return true;
  bool complete = true;
  for_each_unit(item, [&](std::int64_t unit, std::int64_t slice) {
    complete &= access_.residency->state(piece, unit, slice) == Residency::State::kThere;
  });
  return complete;
}

}  // namespace ooc
