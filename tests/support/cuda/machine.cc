#include "tests/support/cuda/machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/support/cuda/cuda_emulation.h"
#include "tests/support/cuda/grid.h"

namespace cuda_emulation {

State& state = *new State;
thread_local int current_device = 0;
thread_local bool in_stream = false;

int key_of(int device) {
  static std::vector<int> keys;
  while (static_cast<int>(keys.size()) <= device) {
    keys.push_back(EMULATION_TSAN ? -1 : pkey_alloc(0, PKEY_DISABLE_ACCESS));
  }
  return keys[static_cast<std::size_t>(device)];
}

void protect(int device, bool open) {
  const int key = key_of(device);
  if (key >= 0) {
    pkey_set(key, open ? 0 : PKEY_DISABLE_ACCESS);
    return;
  }
  for (const auto& [at, a] : state.devices[static_cast<std::size_t>(device)].live) {
    mprotect(at, a.pages, open ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

int device_of(const void* p) {
  const auto* at = static_cast<const std::byte*>(p);
  for (std::size_t d = 0; d < state.devices.size(); ++d) {
    const std::byte* arena = state.devices[d].arena;
    if (at >= arena && at < arena + kArenaBytes) return static_cast<int>(d);
  }
  return -1;
}

bool is_pinned(const void* p, std::size_t bytes) {
  auto* at = const_cast<std::byte*>(static_cast<const std::byte*>(p));
  auto next = state.pinned.upper_bound(at);
  if (next == state.pinned.begin()) return false;
  --next;
  return at + bytes <= next->first + next->second;
}

namespace {

void segv(int, siginfo_t* info, void*) {
  const int device = device_of(info->si_addr);
  if (device >= 0) {
    std::fprintf(stderr,
                 "CUDA emulation: memory of device %d touched at arena offset %zu: by the host, by "
                 "another device without peer access, after an allocation, or after its end\n",
                 device,
                 static_cast<std::size_t>(static_cast<std::byte*>(info->si_addr) -
                                          state.devices[static_cast<std::size_t>(device)].arena));
    std::abort();
  }
  std::signal(SIGSEGV, SIG_DFL);
}

}  // namespace

bool can_run(const CUstream_st& stream) {
  if (stream.queue.empty()) return false;
  const auto& work = stream.queue.front();
  return work.event == nullptr || work.event->reached >= work.value;
}

bool run_any() {
  std::vector<CUstream_st*> able;
  for (auto* s : state.streams) {
    if (can_run(*s)) able.push_back(s);
  }
  if (able.empty()) return false;
  able[next_random(state.random) % able.size()]->run_front();
  return true;
}

void run_until(const std::function<bool()>& done, CUstream_st* preferred) {
  while (!done()) {
    if (state.order != Order::kShuffled && preferred != nullptr && can_run(*preferred)) {
      preferred->run_front();
    } else if (!run_any()) {
      fault("a wait for work that was never issued");
    }
  }
}

void wait_for_all() {
  while (run_any()) {
  }
  for (auto* s : state.streams) acquire(&s->done);
}

void issue(cudaStream_t stream, CUstream_st::Work work) {
  release(&stream->issued);
  stream->queue.push_back(std::move(work));
  if (state.order == Order::kEager) {
    while (can_run(*stream)) stream->run_front();
    while (run_any()) {
    }
  } else if (state.order == Order::kShuffled) {
    for (std::uint64_t n = next_random(state.random) % 3; n > 0 && run_any(); --n) {
    }
  }
}

cudaError_t set_last(cudaError_t error) {
  if (error != cudaSuccess) state.last = error;
  return error;
}

cudaError_t begin_call() {
  if (in_stream) fault("a host function of a stream calls CUDA");
  ++state.counters.calls;
  if (state.calls_left == 0 && state.is_lost) return set_last(state.injected);
  if (state.calls_left >= 0 && state.calls_left-- == 0) return set_last(state.injected);
  return cudaSuccess;
}

bool known(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
    fault("work in a default stream, which waits for all others: give it a stream of its own");
  }
  return state.streams.count(stream) != 0;
}

void reset(const Machine& machine, Order order, std::uint64_t seed) {
  const std::lock_guard<std::recursive_mutex> lock(state.mutex);
  static bool handler = false;
  if (!std::exchange(handler, true) && EMULATION_ASAN == 0 && EMULATION_TSAN == 0) {
    struct sigaction action {};
    action.sa_sigaction = segv;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
  }
  for (Device& d : state.devices) {
    permit(d.arena, d.next);
    munmap(d.arena, kArenaBytes);
  }
  for (auto* s : state.streams) delete s;
  for (auto* e : state.events) delete e;
  state.streams.clear();
  state.events.clear();
  state.devices.assign(static_cast<std::size_t>(machine.devices), {});
  for (Device& d : state.devices) {
    d.arena = static_cast<std::byte*>(
        mmap(nullptr, kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (d.arena == MAP_FAILED) fault("no addresses for an arena");
  }
  state.machine = machine;
  state.order = order;
  state.random = seed;
  state.counters = {};
  state.calls_left = -1;
  state.last = cudaSuccess;
  current_device = 0;
  set_block_order(order, seed);
}

bool is_emulated() { return true; }
int devices() { return state.machine.devices; }

void fail_from(int calls, int error) {
  fail_after(calls, error);
  state.is_lost = true;
}

void fail_after(int calls, int error) {
  state.calls_left = calls;
  state.is_lost = false;
  state.injected = static_cast<cudaError_t>(error);
}

Counters counters() {
  Counters c = state.counters;
  count_blocks(c);
  for (const Device& d : state.devices) c.live_allocations += static_cast<int>(d.live.size());
  c.live_streams = static_cast<int>(state.streams.size());
  c.live_events = static_cast<int>(state.events.size());
  return c;
}

}  // namespace cuda_emulation
