#include "sched/stream/slots.h"

#include <algorithm>
#include <iterator>

#include "storage/base/errors.h"

namespace ooc {

Slots::Slots(std::span<std::byte> region, std::int64_t count, const Hazards& hazards)
    : count_(count), hazards_(&hazards) {
  if (count == 0) return;
  bytes_ = region.size() / static_cast<std::size_t>(count);
  for (std::int64_t slot = count; slot-- > 0;) {
    free_.push_back(region.data() + static_cast<std::size_t>(slot) * bytes_);
  }
}

bool Slots::has_one() const {
  return std::any_of(free_.begin(), free_.end(),
                     [this](const std::byte* slot) { return is_available(slot); });
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
