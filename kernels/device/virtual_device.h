// The CPU as a device with memory of its own: an arena of limited capacity, to and from which
// everything is copied. What runs on it runs on a GPU's terms, without a GPU: for tests, and to try
// a plan for one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/device/backend.h"

namespace ooc {

// The CPU's kernels, run inline. host_accessible() is false; a thread of the device copies in,
// another one out, each one thing after the other. allocate() throws BudgetError where its buffers
// would take more than `memory_bytes` together (0: no limit), and they give back what they took
// when they go. `link_rate`: bytes a second that copies are held to, each way (0: no limit).
std::unique_ptr<Backend> make_virtual_cpu_device(std::string name, std::int64_t memory_bytes,
                                                 std::int64_t link_rate = 0);

}  // namespace ooc
