// Fibers: what the threads of a block run on, taking turns on one host thread.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/support/cuda/sanitizers.h"

namespace cuda_emulation {

// A stack that threads run on, one after the other.
struct Fiber {
  boost::context::fiber context;
  Flow flow;
  void* stack = nullptr;
  void* asan_frames = nullptr;
  const void* stack_bottom = nullptr;
  std::size_t stack_bytes = 0;

  Fiber() = default;
  Fiber(const Fiber&) = delete;
};

// Fibers outlive grids: a stack costs more than what most threads do on it. A fiber that sleeps
// between grids may go on in another host thread, so nothing here is thread_local.
struct Fibers {
  std::vector<std::unique_ptr<Fiber>> all;
  std::vector<Fiber*> idle, used;  // used: ThreadSanitizer wants a flow for each thread of a block
  Fiber main;
  Fiber* current = nullptr;
  Fiber* previous = nullptr;
};
extern Fibers* fibers;  // of the host thread whose turn it is
Fibers* fibers_of(bool second_host_thread);

// The running fiber sleeps until somebody switches to it again. Counts switches.
void switch_to(Fiber& to);
std::int64_t& switches();
Fiber& idle_fiber();
Fiber& new_fiber();
// What fibers do (block_runner.cc): run threads until none is left, then switch away.
void run_threads(Fiber& own);

}  // namespace cuda_emulation
