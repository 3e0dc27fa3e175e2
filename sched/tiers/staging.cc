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

bool Staging::may_take(std::size_t device) const {
  if (free_.empty()) return false;
  if (devices_[device].slots < share_) return true;
  std::size_t kept = 0;
  for (std::size_t other = 0; other < devices_.size(); ++other) {
    const std::size_t half = (share_ + 1) / 2, has = devices_[other].slots;
    if (other != device && has < half) kept += half - has;
  }
  return free_.size() > kept;
}

void Staging::acquire(std::size_t device, std::function<void(std::byte*)> use) {
  std::byte* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    Device& own = devices_[device];
    if (!own.waiting.empty() || !may_take(device)) {
      own.waiting.push_back(std::move(use));
      return;
    }
    ++own.slots;
    slot = free_.back();
    free_.pop_back();
  }
  use(slot);
}

// Devices that lack some of their share come first.
void Staging::release(std::size_t device, std::byte* slot) {
  std::function<void(std::byte*)> next;
  {
    const std::lock_guard lock(mutex_);
    --devices_[device].slots;
    free_.push_back(slot);
    for (const bool lacking : {true, false}) {
      for (std::size_t i = 0; i < devices_.size() && !next; ++i) {
        const std::size_t at = (turn_ + 1 + i) % devices_.size();
        Device& other = devices_[at];
        if (other.waiting.empty() || (lacking && other.slots >= share_) || !may_take(at)) continue;
        turn_ = at;
        ++other.slots;
        free_.pop_back();
        next = std::move(other.waiting.front());
        other.waiting.pop_front();
      }
    }
  }
  if (next) next(slot);
}

bool Staging::idle() const {
  const std::lock_guard lock(mutex_);
  const auto waits = [](const Device& device) { return !device.waiting.empty(); };
  return std::none_of(devices_.begin(), devices_.end(), waits) && free_.size() == count_;
}

}  // namespace ooc
