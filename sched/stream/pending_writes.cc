#include "sched/stream/pending_writes.h"

#include <algorithm>
#include <iterator>

#include "storage/base/errors.h"

namespace ooc {

void PendingWrites::add(const IoChunk& io_chunk, std::span<const std::byte> memory) {
  OOC_CHECK(!has(io_chunk) && !lie_in(memory));
  io_chunks_[io_chunk] = memory.data();
  ends_[memory.data()] = memory.data() + memory.size();
}

void PendingWrites::remove(const IoChunk& io_chunk) {
  const auto found = io_chunks_.find(io_chunk);
  OOC_CHECK(found != io_chunks_.end());
  ends_.erase(found->second);
  io_chunks_.erase(found);
}

void PendingWrites::reset() {
  io_chunks_.clear();
  ends_.clear();
}

bool PendingWrites::lie_in(std::span<const std::byte> memory) const {
  if (memory.empty()) return false;
  const auto after = ends_.lower_bound(memory.data() + memory.size());
  return after != ends_.begin() && std::prev(after)->second > memory.data();
}

Slots::Slots(std::span<std::byte> region, std::int64_t count, const PendingWrites& leaving)
    : count_(count), pending_writes_(&leaving) {
  if (count == 0) return;
  bytes_ = region.size() / static_cast<std::size_t>(count);
  for (std::int64_t slot = count; slot-- > 0;) {
    free_.push_back(region.data() + static_cast<std::size_t>(slot) * bytes_);
  }
}

bool Slots::is_available(const std::byte* slot) const {
  return !pending_writes_->lie_in({slot, bytes_});
}

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
