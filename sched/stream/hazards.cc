#include "sched/stream/hazards.h"

#include <iterator>

#include "storage/base/errors.h"

namespace ooc {

bool Hazards::busy(std::span<const std::byte> memory) const {
  if (memory.empty()) return false;
  const auto after = uses_.lower_bound(memory.data() + memory.size());
  return after != uses_.begin() && std::prev(after)->second > memory.data();
}

void Hazards::begin(std::span<const std::byte> memory) {
  OOC_CHECK(!memory.empty() && !busy(memory));
  uses_[memory.data()] = memory.data() + memory.size();
}

void Hazards::end(const std::byte* memory) { OOC_CHECK(uses_.erase(memory) == 1); }

}  // namespace ooc
