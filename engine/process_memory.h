// The kernel's account of this process.
#pragma once

#include <cstdint>

namespace ooc {

// High-water mark of resident memory (VmHWM of /proc/self/status), mapped pages included; 0 where
// the kernel doesn't say.
std::int64_t peak_host_bytes();

}  // namespace ooc
