// A region's equal slots, each taken and given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sched/stream/hazards.h"

namespace ooc {

// Under the driver's lock.
class Slots {
 public:
  Slots() = default;
  // Of a pass; the hazards outlive it.
  Slots(std::span<std::byte> region, std::int64_t count, const Hazards& hazards);

  std::int64_t count() const { return count_; }
  // Whether one can be taken: nobody of this pass has it, and nothing else is under way there.
  bool has_one() const;
  // One of those.
  std::byte* take();
  void give_back(std::byte* slot) { free_.push_back(slot); }

 private:
  bool is_available(const std::byte* slot) const { return !hazards_->busy({slot, bytes_}); }

  std::int64_t count_ = 0;
  std::size_t bytes_ = 0;
  const Hazards* hazards_ = nullptr;
  std::vector<std::byte*> free_;
};

}  // namespace ooc
