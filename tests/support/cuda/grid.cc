#include "tests/support/cuda/grid.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/support/cuda/block_runner.h"
#include "tests/support/cuda/cuda_emulation.h"
#include "tests/support/cuda/sanitizers.h"

namespace cuda_emulation {
namespace {

class SecondThread {
 public:
  SecondThread()
      : thread_([this] {
          for (;;) {
            turn_.wait(0);
            (*job_)();
            turn_.store(0);
            turn_.notify_all();
          }
        }) {
    thread_.detach();
  }
  void run(const std::function<void()>& job) {
    job_ = &job;
    turn_.store(1);
    turn_.notify_all();
    turn_.wait(1);
  }

 private:
  const std::function<void()>* job_ = nullptr;
  std::atomic<int> turn_{0};
  std::thread thread_;
};

}  // namespace

std::uint64_t next_random(std::uint64_t& state) {  // splitmix64
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void set_block_order(Order new_order, std::uint64_t seed) {
  order = new_order;
  random_state = seed;
  threads_run() = switches() = 0;
}

void count_blocks(Counters& into) {
  into.threads = threads_run();
  into.switches = switches();
}

void run_grid(const Grid& grid, const std::function<void()>& thread_body) {
  // For ThreadSanitizer two host threads share the blocks, each with shared memory of its own: what
  // their blocks do is not ordered. Blocks of the same thread are.
  BlockRunner first(grid, thread_body), second(grid, thread_body);
  int grid_token = 0;
  const std::uint64_t count =
      static_cast<std::uint64_t>(grid.blocks.x) * grid.blocks.y * grid.blocks.z;
  std::vector<std::uint64_t> blocks(count);
  std::iota(blocks.begin(), blocks.end(), std::uint64_t{0});
  if (order == Order::kLazy) std::reverse(blocks.begin(), blocks.end());
  if (order == Order::kShuffled) {
    for (std::size_t i = count; i > 1; --i) {
      std::swap(blocks[i - 1], blocks[next_random(random_state) % i]);
    }
  }
  release(&grid_token);
  for (const std::uint64_t b : blocks) {
    const uint3 block = {static_cast<unsigned>(b % grid.blocks.x),
                         static_cast<unsigned>(b / grid.blocks.x % grid.blocks.y),
                         static_cast<unsigned>(b / grid.blocks.x / grid.blocks.y)};
    const bool on_second = EMULATION_TSAN != 0 && next_random(random_state) % 2 == 0;
    runner = on_second ? &second : &first;
    fibers = fibers_of(on_second);
    if (on_second) {
      static SecondThread& thread = *new SecondThread;
      thread.run([&] { runner->run(block, &grid_token); });
    } else {
      runner->run(block, &grid_token);
    }
  }
  first.take_end();
  second.take_end();
  runner = nullptr;
}

std::uint64_t meet_lanes(std::uint32_t mask, const char* what, Combine combine, std::uint64_t value,
                         std::uint64_t argument, Where where) {
  return runner->meet_lanes(mask, what, combine, value, argument, where);
}
int meet_block(const char* what, Vote vote, bool predicate, Where where) {
  return runner->meet_block(what, vote, predicate, where);
}
std::uint32_t live_lanes() { return runner->live_lanes(*running); }

void fault(const char* what, Where where) {
  if (runner != nullptr) runner->fault(what, running, where);
  std::fprintf(stderr, "CUDA emulation: %s\n", what);
  std::abort();
}

void copy_later(void* to, const void* from, std::size_t bytes, std::size_t zeros) {
  auto& groups = running->copies;
  if (groups.empty()) groups.emplace_back();
  groups.back().push_back({to, from, bytes, zeros});
}

void commit_copies() { running->copies.emplace_back(); }

void wait_copies(unsigned still_open) {
  auto& groups = running->copies;
  if (groups.empty()) return;
  // The last group is the one being filled: `still_open` before it may go on.
  const std::size_t done = groups.size() - 1 > still_open ? groups.size() - 1 - still_open : 0;
  for (std::size_t i = 0; i < done; ++i) {
    for (const auto& c : groups[i]) {
      std::memcpy(c.to, c.from, c.bytes - c.zeros);
      std::memset(static_cast<char*>(c.to) + c.bytes - c.zeros, 0, c.zeros);
    }
  }
  groups.erase(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(done));
  if (groups.size() == 1 && groups.back().empty()) groups.clear();
}

}  // namespace cuda_emulation
