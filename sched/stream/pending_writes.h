// Rows on their way from the arena to storage. A pass leaves its last ones behind: until they have
// left, the next pass neither reads them nor takes their memory, and does what it can without.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace ooc {

// Under the driver's lock.
class LeavingRows {
 public:
  struct Unit {
    int tensor = -1;  // of the plan's tensors
    std::int64_t unit = 0, slice = 0;
    auto operator<=>(const Unit&) const = default;
  };
  void add(const Unit& unit, std::span<const std::byte> memory);
  void remove(const Unit& unit);
  // Behind an epoch that was given up: some may have failed.
  void forget();

  std::int64_t count() const { return static_cast<std::int64_t>(units_.size()); }
  bool has(const Unit& unit) const { return units_.contains(unit); }
  // Whether some of the memory is still theirs.
  bool lie_in(std::span<const std::byte> memory) const;

 private:
  std::map<Unit, const std::byte*> units_;             // where they begin
  std::map<const std::byte*, const std::byte*> ends_;  // by that
};

// A region's equal parts, each taken and given back. Under the driver's lock.
class Slots {
 public:
  Slots() = default;
  Slots(std::span<std::byte> region, std::int64_t count, const LeavingRows& leaving);

  std::int64_t count() const { return count_; }
  // Whether so many can be taken: nobody has them, and no rows of an earlier pass lie there.
  bool has(std::int64_t count) const;
  // One of those.
  std::byte* take();
  void give_back(std::byte* slot) { free_.push_back(slot); }

 private:
  bool is_available(const std::byte* slot) const;

  std::int64_t count_ = 0;
  std::size_t bytes_ = 0;
  const LeavingRows* leaving_ = nullptr;
  std::vector<std::byte*> free_;
};

}  // namespace ooc
