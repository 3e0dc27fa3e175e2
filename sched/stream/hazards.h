// Memory of the arena that earlier work still uses, where the plan gives it to later work as well:
// rows on their way out, from when they are written, and sums of a destination range, from their
// first edge until they have left. Whoever is about to fill such memory asks first. What a pass has
// to itself isn't here: slots that it has taken, rows that it reads, its workers' scratch.
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
  // A use of memory that isn't busy begins; end() takes where the memory begins.
  void begin(std::span<const std::byte> memory);
  void end(const std::byte* memory);
  // After an epoch that was given up: no use is under way any more.
  void reset() { uses_.clear(); }

 private:
  std::map<const std::byte*, const std::byte*> uses_;  // by where they begin: their ends
};

}  // namespace ooc
