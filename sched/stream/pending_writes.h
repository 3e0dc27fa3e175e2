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
class PendingWrites {
 public:
  struct IoChunk {
    int tensor = -1;  // of the plan's tensors
    std::int64_t io_chunk = 0, slice = 0;
    auto operator<=>(const IoChunk&) const = default;
  };
  void add(const IoChunk& io_chunk, std::span<const std::byte> memory);
  void remove(const IoChunk& io_chunk);
  // After an epoch that was given up: some may have failed.
  void reset();

  std::int64_t count() const { return static_cast<std::int64_t>(io_chunks_.size()); }
  bool has(const IoChunk& io_chunk) const { return io_chunks_.contains(io_chunk); }
  // Whether some of the memory is still theirs.
  bool lie_in(std::span<const std::byte> memory) const;

 private:
  std::map<IoChunk, const std::byte*> io_chunks_;      // where they begin
  std::map<const std::byte*, const std::byte*> ends_;  // by that
};

// A region's equal destination ranges, each taken and given back. Under the driver's lock.
class Slots {
 public:
  Slots() = default;
  Slots(std::span<std::byte> region, std::int64_t count, const PendingWrites& leaving);

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
  const PendingWrites* pending_writes_ = nullptr;
  std::vector<std::byte*> free_;
};

}  // namespace ooc
