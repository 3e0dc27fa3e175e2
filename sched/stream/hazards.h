// Which memory of the arena is in use. Whoever is about to fill memory asks here, whatever used it
// last: rows that an earlier pass left on their way to storage, or sums of the destination range
// before.
#pragma once

#include <cstddef>
#include <map>
#include <span>

namespace ooc {

// Under the driver's lock.
class Hazards {
 public:
  // Whether a use of some of the memory is under way.
  bool busy(std::span<const std::byte> memory) const;
  // A use of memory that isn't busy begins; it ends by where it began.
  void begin(std::span<const std::byte> memory);
  void end(const std::byte* memory);
  // After an epoch that was given up: no use is under way any more.
  void reset() { uses_.clear(); }

 private:
  std::map<const std::byte*, const std::byte*> uses_;  // by where they begin: their ends
};

}  // namespace ooc
