// How much a disk is given at once.
#pragma once

#include <algorithm>
#include <cstddef>

namespace ooc {

// Of reads, or of writes: what the disk moves while the thread that hands on what came, and asks
// for more, may have to wait for a processor, which all have something to compute. With less the
// disk stands still meanwhile; with more, what is asked for last makes what is needed first late.
class BytesAtOnce {
 public:
  explicit BytesAtOnce(std::size_t least) : least_(least), bytes_(static_cast<double>(least)) {}

  std::size_t bytes() const { return std::max(least_, static_cast<std::size_t>(bytes_)); }

  // Whether so much is under way that the disk has no reason to be slower than it is.
  bool fills(std::size_t under_way) const { return under_way >= least_; }

  // So much has come since the last call; `busy`: the disk had enough to do all the time, and has
  // some left. `seconds`: of a clock.
  void moved(std::size_t bytes, bool busy, double seconds) {
    if (!busy || begin_ < 0) {
      begin_ = busy ? seconds : -1;
      counted_ = 0;
      return;
    }
    counted_ += static_cast<double>(bytes);
    const double taken = seconds - begin_;
    if (counted_ < kCounted || taken < kSeconds) return;
    // While that thread waits nothing comes: a disk is faster than it seems, never slower.
    const double change = std::min(kSeconds * counted_ / taken, kMost) - bytes_;
    bytes_ += change / (change > 0 ? 4 : 16);
    begin_ = seconds;
    counted_ = 0;
  }

 private:
  static constexpr double kSeconds = 0.002;
  static constexpr double kCounted = 32 << 20, kMost = 64 << 20;

  std::size_t least_;
  double bytes_;
  double begin_ = -1;  // of what is counted; below 0: nothing is
  double counted_ = 0;
};

}  // namespace ooc
