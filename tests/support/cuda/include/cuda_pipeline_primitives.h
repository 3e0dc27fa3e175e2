// Stands for the toolkit's header of this name where kernels run on the CPU: cp.async.
#pragma once

#include "tests/support/cuda/cuda_emulation.h"

inline void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes,
                                    std::size_t zeros = 0) {
  if ((bytes != 4 && bytes != 8 && bytes != 16) || std::bit_cast<std::uintptr_t>(to) % bytes != 0 ||
      std::bit_cast<std::uintptr_t>(from) % bytes != 0) {
    cuda_emulation::fault("cp.async moves 4, 8 or 16 aligned bytes");
  }
  cuda_emulation::copy_later(to, from, bytes, zeros);
}
inline void __pipeline_commit() { cuda_emulation::commit_copies(); }
inline void __pipeline_wait_prior(unsigned still_open) { cuda_emulation::wait_copies(still_open); }
