#include "sched/tiers/staging.h"

#include <utility>

namespace ooc {

Staging::Staging(std::byte* memory, std::int64_t count, std::int64_t slot_bytes)
    : slot_bytes_(slot_bytes), count_(static_cast<std::size_t>(count)) {
  for (std::int64_t slot = count; slot-- > 0;) free_.push_back(memory + slot * slot_bytes);
}

void Staging::acquire(std::function<void(std::byte*)> use) {
  std::byte* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      waiting_.push_back(std::move(use));
      return;
    }
    slot = free_.back();
    free_.pop_back();
  }
  use(slot);
}

void Staging::release(std::byte* slot) {
  std::function<void(std::byte*)> next;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      free_.push_back(slot);
      return;
    }
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  next(slot);
}

bool Staging::idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && free_.size() == count_;
}

}  // namespace ooc
