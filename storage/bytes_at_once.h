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

  // So many more have moved; `others_wait`: more is asked for than may be under way, so the disk
  // has been as fast as it goes. `seconds`: of a clock.
  void moved(std::size_t bytes, bool others_wait, double seconds) {
    if (!others_wait || begin_ < 0) {
      begin_ = others_wait ? seconds : -1;
      counted_ = 0;
      return;
    }
    counted_ += static_cast<double>(bytes);
    if (counted_ < kCounted || seconds <= begin_) return;
    bytes_ += (kSeconds * counted_ / (seconds - begin_) - bytes_) / 4;
    begin_ = seconds;
    counted_ = 0;
  }

 private:
  static constexpr double kSeconds = 0.002;
  static constexpr double kCounted = 32 << 20;

  std::size_t least_;
  double bytes_;
  double begin_ = -1;  // of what is counted; below 0: nothing is
  double counted_ = 0;
};

}  // namespace ooc
