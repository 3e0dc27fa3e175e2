// The machine that CUDA's tests run on: emulated, in every order that a GPU may work in.
#pragma once

#include <cstdint>

#include "tests/support/cuda/control.h"

namespace ooc::test {

// Calls visit() on a machine with nothing allocated: eager, lazy, and shuffled by some seeds.
template <class Visit>
void for_each_order(int seeds, const cuda_emulation::Machine& machine, Visit&& visit) {
  using cuda_emulation::Order;
  cuda_emulation::reset(machine, Order::kEager);
  visit();
  cuda_emulation::reset(machine, Order::kLazy);
  visit();
  for (int seed = 1; seed <= seeds; ++seed) {
    cuda_emulation::reset(machine, Order::kShuffled, static_cast<std::uint64_t>(seed));
    visit();
  }
}

inline bool nothing_is_left() {
  const cuda_emulation::Counters left = cuda_emulation::counters();
  return left.live_allocations == 0 && left.live_streams == 0 && left.live_events == 0;
}

}  // namespace ooc::test
