#include "sched/tiers/staging.h"

#include <algorithm>
#include <utility>

namespace ooc {

Staging::Staging(std::byte* memory, std::int64_t count, std::int64_t slot_bytes,
                 std::size_t devices)
    : slot_bytes_(slot_bytes),
      count_(static_cast<std::size_t>(count)),
      devices_(devices),
      share_(std::max<std::size_t>(1, count_ / devices)) {
  for (std::int64_t slot = count; slot-- > 0;) free_.push_back(memory + slot * slot_bytes);
}

void Staging::acquire(std::size_t device, std::function<void(std::byte*)> use) {
  std::byte* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    Device& own = devices_[device];
    if (free_.empty() || own.slots == share_) {
      own.waiting.push_back(std::move(use));
      return;
    }
    ++own.slots;
    slot = free_.back();
    free_.pop_back();
  }
  use(slot);
}

void Staging::release(std::size_t device, std::byte* slot) {
  std::function<void(std::byte*)> next;
  {
    const std::lock_guard lock(mutex_);
    --devices_[device].slots;
    for (std::size_t i = 0; i < devices_.size() && !next; ++i) {
      Device& other = devices_[turn_ = (turn_ + 1) % devices_.size()];
      if (other.waiting.empty() || other.slots == share_) continue;
      ++other.slots;
      next = std::move(other.waiting.front());
      other.waiting.pop_front();
    }
    if (!next) {
      free_.push_back(slot);
      return;
    }
  }
  next(slot);
}

bool Staging::idle() const {
  const std::lock_guard lock(mutex_);
  const auto waits = [](const Device& device) { return !device.waiting.empty(); };
  return std::none_of(devices_.begin(), devices_.end(), waits) && free_.size() == count_;
}

}  // namespace ooc
