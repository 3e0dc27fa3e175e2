// Runs the threads of a block, each as if on a fiber of its own, on the calling host thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/support/cuda/cuda_emulation.h"
#include "tests/support/cuda/fibers.h"
#include "tests/support/cuda/grid.h"

namespace cuda_emulation {

struct Thread {
  enum class State { kFresh, kReady, kAtBarrier, kAtLanes, kDone };
  uint3 index{};
  int lane = 0;
  Fiber* fiber = nullptr;
  State state = State::kFresh;
  const char* what = "";
  Where where;
  std::uint32_t mask = 0;
  Combine combine = nullptr;
  std::uint64_t value = 0, argument = 0, result = 0;
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes, zeros;
  };
  std::vector<std::vector<Copy>> copies;  // groups not waited for; the last is open
};

// Of the thread that runs.
extern Thread* running;
// Of the block that runs; null: none does.
class BlockRunner;
extern BlockRunner* runner;
// As set_block_order() said.
extern Order order;
extern std::uint64_t random_state;
std::int64_t& threads_run();

class BlockRunner {
 public:
  explicit BlockRunner(const Grid& grid, const std::function<void()>& body)
      : grid_(grid), body_(body), threads_(grid.threads.x * grid.threads.y * grid.threads.z) {}

  void run(uint3 block, int* grid_token);
  std::uint64_t meet_lanes(std::uint32_t mask, const char* what, Combine combine,
                           std::uint64_t value, std::uint64_t argument, Where where);
  int meet_block(const char* what, Vote vote, bool predicate, Where where);
  std::uint32_t live_lanes(const Thread& thread) const {
    return live_[static_cast<std::size_t>(&thread - threads_.data()) / 32];
  }
  void work(Fiber& own);
  void take_end() { acquire(&end_token_); }
  [[noreturn]] void fault(const char* what, const Thread* thread, Where where) const;

 private:
  void thread_done(Thread& thread);
  void release_barrier_if_complete();
  void release_lanes_if_complete(Thread& thread);
  // The running fiber sleeps; something that can go on goes on.
  void go_on();
  bool ready_first() const;
  void make_ready(Thread& thread);
  Thread* take_ready();
  Thread* take_fresh();

  const Grid& grid_;
  const std::function<void()>& body_;
  std::vector<Thread> threads_;
  std::vector<std::uint32_t> live_, waiting_;  // by warp: lanes not exited, lanes that meet others
  std::vector<int> start_order_;
  std::size_t started_ = 0;
  std::vector<Thread*> ready_;  // a ring
  std::size_t ready_first_ = 0, ready_count_ = 0;
  int at_barrier_ = 0, running_ = 0;
  int votes_ = 0, result_ = 0;
  int barrier_token_ = 0, begin_token_ = 0, end_token_ = 0;
  std::vector<int> lane_tokens_;
};

}  // namespace cuda_emulation
