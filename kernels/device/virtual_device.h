// The CPU as a device with memory of its own: an arena of limited capacity, to and from which
// everything is copied. What runs on it runs on a GPU's terms, without a GPU: for tests, and to try
// a plan for one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/device/backend.h"

namespace ooc {

// A link at a rate that copies of several devices share: each takes its time, one after the other.
// Many threads.
class SharedLink {
 public:
  using Clock = std::chrono::steady_clock;
  explicit SharedLink(double rate) : rate_(rate) {}  // bytes a second

  // When a copy of so many bytes, that begins now, has crossed it.
  Clock::time_point reserve(std::size_t bytes);

 private:
  const double rate_;
  std::mutex mutex_;
  Clock::time_point busy_until_;
};

// What copies cross, each way, and from another device; empty: as fast as memory.
struct VirtualLinks {
  using Path = std::vector<std::shared_ptr<SharedLink>>;
  Path in, out, peer;
};
// A link of a device's own: so many bytes a second each way (0: no limit).
VirtualLinks links_at(std::int64_t rate);

// The CPU's kernels, run inline. host_accessible() is false; a thread of the device copies in,
// another one out, another one from other devices, each one thing after the other. allocate()
// throws BudgetError where its buffers would take more than `memory_bytes` together (0: no limit),
// and they give back what they took when they go.
std::unique_ptr<Backend> make_virtual_cpu_device(std::string name, std::int64_t memory_bytes,
                                                 VirtualLinks links = {});

}  // namespace ooc
