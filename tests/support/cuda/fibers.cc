#include "tests/support/cuda/fibers.h"

#include <sys/mman.h>

#include <cstdlib>
#include <utility>

namespace cuda_emulation {
namespace {

constexpr std::size_t kStackBytes = 256 << 10;

Fibers* const of_host_threads[2] = {new Fibers, new Fibers};
std::int64_t switched = 0;

}  // namespace

Fibers* fibers = of_host_threads[0];

Fibers* fibers_of(bool second_host_thread) { return of_host_threads[second_host_thread]; }

std::int64_t& switches() { return switched; }

void switch_to(Fiber& to) {
  Fiber& from = *fibers->current;
  fibers->previous = &from;
  fibers->current = &to;
  ++switches();
#if EMULATION_ASAN
  __sanitizer_start_switch_fiber(&from.asan_frames, to.stack_bottom, to.stack_bytes);
#endif
  to.flow.enter();
  boost::context::fiber came_from = std::move(to.context).resume();
  fibers->previous->context = std::move(came_from);
#if EMULATION_ASAN
  __sanitizer_finish_switch_fiber(from.asan_frames, &fibers->previous->stack_bottom,
                                  &fibers->previous->stack_bytes);
#endif
}

Fiber& idle_fiber() {
  if (fibers->idle.empty()) return new_fiber();
  Fiber& fiber = *fibers->idle.back();
  fibers->idle.pop_back();
  return fiber;
}

Fiber& new_fiber() {
  fibers->all.push_back(std::make_unique<Fiber>());
  Fiber& fiber = *fibers->all.back();
  fiber.stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fiber.stack == MAP_FAILED) std::abort();
  fiber.stack_bottom = fiber.stack;
  fiber.stack_bytes = kStackBytes;
  fiber.flow.create();
  struct StackOfFiber {  // stacks live as long as their fiber
    void deallocate(boost::context::stack_context&) noexcept {}
  };
  boost::context::stack_context stack;
  // Not all stacks begin in the same set of a cache.
  const std::size_t shift = fibers->all.size() * 320 % (16 << 10) / 64 * 64;
  stack.size = kStackBytes - shift;
  stack.sp = static_cast<char*>(fiber.stack) + stack.size;
  fiber.context = boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack), StackOfFiber{},
      [&fiber](boost::context::fiber&& came_from) {
        fibers->previous->context = std::move(came_from);
#if EMULATION_ASAN
        __sanitizer_finish_switch_fiber(nullptr, &fibers->previous->stack_bottom,
                                        &fibers->previous->stack_bytes);
#endif
        for (;;) run_threads(fiber);
        return boost::context::fiber{};
      });
  return fiber;
}

}  // namespace cuda_emulation
