// Rows on their way from the arena to storage. A pass leaves its last ones there: until they have
// left, the next pass doesn't read them from storage, and does what it can without.
#pragma once

#include <compare>
#include <cstdint>
#include <set>

namespace ooc {

// Under the driver's lock.
class PendingWrites {
 public:
  struct IoChunk {
    int tensor = -1;  // of the plan's tensors
    std::int64_t io_chunk = 0, slice = 0;
    auto operator<=>(const IoChunk&) const = default;
  };
  void add(const IoChunk& io_chunk);
  void remove(const IoChunk& io_chunk);
  // After an epoch that was given up: some may have failed.
  void reset() { io_chunks_.clear(); }

  std::int64_t count() const { return static_cast<std::int64_t>(io_chunks_.size()); }
  bool has(const IoChunk& io_chunk) const { return io_chunks_.contains(io_chunk); }

 private:
  std::set<IoChunk> io_chunks_;
};

}  // namespace ooc
