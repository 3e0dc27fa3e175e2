// The CPU as a device with memory of its own: an arena of limited capacity, to and from which
// everything is copied. What runs on it runs on a GPU's terms, without a GPU: for tests, and to try
// a plan for one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/device/backend.h"
#include "storage/base/shared_link.h"

namespace ooc {

// What copies cross, each way, and from another device; empty: as fast as memory.
struct VirtualLinks {
  LinkPath in, out, peer;
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
