// A block's shared memory: what kernels declare as `extern __shared__ unsigned char
// shared_bytes[]` in namespace ooc, and their static __shared__ variables.
#pragma once

#include <cstddef>

namespace cuda_emulation {

inline constexpr std::size_t kMaxShared = 232448, kDefaultShared = 49152;

// Before a block of the kernel: all of it is poisoned, with NaN in every floating-point format, and
// what lies after `bytes` of the dynamic one is forbidden.
void open_shared(const void* kernel, std::size_t bytes);
// It is another thread's stack some day.
void close_shared();

}  // namespace cuda_emulation
