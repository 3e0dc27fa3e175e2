#include "sched/stream/pending_writes.h"

#include <algorithm>
#include <iterator>

#include "storage/base/errors.h"

namespace ooc {

void LeavingRows::add(const Unit& unit, std::span<const std::byte> memory) {
  OOC_CHECK(!has(unit) && !lie_in(memory));
  units_[unit] = memory.data();
  ends_[memory.data()] = memory.data() + memory.size();
}

void LeavingRows::remove(const Unit& unit) {
  const auto found = units_.find(unit);
  OOC_CHECK(found != units_.end());
  ends_.erase(found->second);
  units_.erase(found);
}

void LeavingRows::forget() {
  units_.clear();
  ends_.clear();
}

bool LeavingRows::lie_in(std::span<const std::byte> memory) const {
  if (memory.empty()) return false;
  const auto behind = ends_.lower_bound(memory.data() + memory.size());
  return behind != ends_.begin() && std::prev(behind)->second > memory.data();
}

Slots::Slots(std::span<std::byte> region, std::int64_t count, const LeavingRows& leaving)
    : count_(count), leaving_(&leaving) {
  if (count == 0) return;
  bytes_ = region.size() / static_cast<std::size_t>(count);
  for (std::int64_t slot = count; slot-- > 0;) {
    free_.push_back(region.data() + static_cast<std::size_t>(slot) * bytes_);
  }
}

bool Slots::is_available(const std::byte* slot) const { return !leaving_->lie_in({slot, bytes_}); }

bool Slots::has(std::int64_t count) const {
  for (const std::byte* slot : free_) {
    if (count == 0) break;
    if (is_available(slot)) --count;
  }
  return count == 0;
}

std::byte* Slots::take() {
  const auto found = std::find_if(free_.rbegin(), free_.rend(),
                                  [this](const std::byte* slot) { return is_available(slot); });
  OOC_CHECK(found != free_.rend());
  std::byte* const slot = *found;
  free_.erase(std::next(found).base());
  return slot;
}

}  // namespace ooc
