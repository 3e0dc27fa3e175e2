// Runs the blocks of a grid, one after the other, on the calling host thread.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>

#include "tests/support/cuda/control.h"

namespace cuda_emulation {

struct Grid {
  dim3 blocks, threads;
  std::size_t shared_bytes = 0;
  const void* kernel = nullptr;
};

void run_grid(const Grid& grid, const std::function<void()>& thread_body);

// Of threads and blocks; streams have their own.
void set_block_order(Order order, std::uint64_t seed);
void count_blocks(Counters& into);
std::uint64_t next_random(std::uint64_t& state);

}  // namespace cuda_emulation
