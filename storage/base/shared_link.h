// A link, a disk, or whatever else moves so many bytes a second, one request after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "storage/base/run_clock.h"

namespace ooc {

// Many threads.
class SharedLink {
 public:
  explicit SharedLink(double rate) : rate_(rate) {}  // bytes a second

  // When a transfer of so many bytes, that is there from `now` on, has crossed it: after those that
  // were asked for before.
  RunClock::Time reserve(std::size_t bytes, RunClock::Time now) {
    const std::chrono::duration<double> takes(static_cast<double>(bytes) / rate_);
    const std::lock_guard lock(mutex_);
    busy_until_ =
        std::max(busy_until_, now) + std::chrono::duration_cast<RunClock::Duration>(takes);
    return busy_until_;
  }
  double rate() const { return rate_; }

 private:
  const double rate_;
  std::mutex mutex_;
  RunClock::Time busy_until_{};
};

// Those that a transfer crosses, all at once; empty: it takes no time.
using LinkPath = std::vector<std::shared_ptr<SharedLink>>;
inline RunClock::Time reserve(const LinkPath& path, std::size_t bytes, RunClock::Time now) {
  RunClock::Time end = now;
  for (const auto& link : path) end = std::max(end, link->reserve(bytes, now));
  return end;
}

}  // namespace ooc
