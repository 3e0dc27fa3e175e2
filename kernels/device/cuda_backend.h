// A GPU as a device.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/device/backend.h"

namespace ooc {

// What the backend takes of the device's and of the host's memory beside buffers, once.
inline constexpr std::int64_t kCudaRingBytes = 2 << 20;

// The GPU of the number `index`, which gives out so many bytes at most; 0: what is free there.
// DeviceError where there is none, or no driver; BudgetError where less is free.
std::unique_ptr<Backend> make_cuda_backend(int index, std::int64_t memory_bytes);

}  // namespace ooc
