#include "tests/support/cuda/block_runner.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "tests/support/cuda/sanitizers.h"
#include "tests/support/cuda/shared_memory.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_emulation {

int lane = 0;
Thread* running = nullptr;
BlockRunner* runner = nullptr;
Order order = Order::kEager;
std::uint64_t random_state = 1;

namespace {

std::int64_t counted_threads = 0;

void make_current(Thread& thread) {
  running = &thread;
  threadIdx = thread.index;
  lane = thread.lane;
}

}  // namespace

std::int64_t& threads_run() { return counted_threads; }

void run_threads(Fiber& own) { runner->work(own); }

void BlockRunner::fault(const char* what, const Thread* thread, Where where) const {
  std::fprintf(stderr, "CUDA emulation: %s:%d: %s", where.file, where.line, what);
  if (thread != nullptr) {
    std::fprintf(stderr, "; thread (%u,%u,%u) of block (%u,%u,%u)", thread->index.x,
                 thread->index.y, thread->index.z, blockIdx.x, blockIdx.y, blockIdx.z);
  }
  std::fputc('\n', stderr);
  int shown = 0;
  for (std::size_t i = 0; i < threads_.size() && shown < 4; ++i) {
    const Thread& t = threads_[i];
    if (t.state != Thread::State::kAtBarrier && t.state != Thread::State::kAtLanes) continue;
    const auto same = [&](const Thread& o) {
      return o.state == t.state && o.where.line == t.where.line && o.mask == t.mask;
    };
    if (i > 0 && same(threads_[i - 1])) continue;
    std::size_t last = i;
    while (last + 1 < threads_.size() && same(threads_[last + 1])) ++last;
    std::fprintf(stderr, "  threads %zu to %zu wait at %s:%d, %s, mask %08x\n", i, last,
                 t.where.file, t.where.line, t.what, t.mask);
    ++shown;
  }
  std::abort();
}

void BlockRunner::run(uint3 block, int* grid_token) {
  const std::size_t count = threads_.size();
  blockIdx = block;
  blockDim = grid_.threads;
  gridDim = grid_.blocks;
  live_.assign((count + 31) / 32, 0);
  waiting_.assign(live_.size(), 0);
  lane_tokens_.assign(live_.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    Thread& t = threads_[i];
    const unsigned n = static_cast<unsigned>(i), x = grid_.threads.x, y = grid_.threads.y;
    t.index = {n % x, n / x % y, n / x / y};
    t.lane = static_cast<int>(n % 32);
    t.state = Thread::State::kFresh;
    t.copies.clear();
    live_[i / 32] |= 1u << (i % 32);
  }
  start_order_.resize(count);
  std::iota(start_order_.begin(), start_order_.end(), 0);
  if (order == Order::kLazy) std::reverse(start_order_.begin(), start_order_.end());
  if (order == Order::kShuffled) {
    for (std::size_t i = count; i > 1; --i) {
      std::swap(start_order_[i - 1], start_order_[next_random(random_state) % i]);
    }
  }
  started_ = 0;
  ready_.resize(count);
  ready_first_ = ready_count_ = 0;
  at_barrier_ = 0;
  running_ = static_cast<int>(count);
  if (EMULATION_TSAN != 0) {  // the emulation's own memory must not change hands between flows
    fibers->used.reserve(count);
    while (fibers->idle.size() < count) fibers->idle.push_back(&new_fiber());
  }
  result_ = votes_ = 0;
  open_shared(grid_.kernel, grid_.shared_bytes);
  threads_run() += static_cast<std::int64_t>(count);

  fibers->main.flow.adopt_running();
  fibers->current = &fibers->main;
  acquire(grid_token);
  release(&begin_token_);
  switch_to(idle_fiber());
  acquire(&end_token_);
  for (Fiber* f : fibers->used) fibers->idle.push_back(f);
  fibers->used.clear();
  running = nullptr;
  close_shared();
  if (running_ > 0) {
    fault("threads wait for others that don't come", nullptr, Where::current());
  }
}

bool BlockRunner::ready_first() const {
  return order != Order::kShuffled || next_random(random_state) % 4 != 0;
}

void BlockRunner::make_ready(Thread& thread) {
  thread.state = Thread::State::kReady;
  ready_[(ready_first_ + ready_count_++) % ready_.size()] = &thread;
}

Thread* BlockRunner::take_ready() {
  if (ready_count_ == 0) return nullptr;
  Thread*& first = ready_[ready_first_];
  if (order == Order::kShuffled) {
    std::swap(first,
              ready_[(ready_first_ + next_random(random_state) % ready_count_) % ready_.size()]);
  }
  ready_first_ = ready_first_ + 1 == ready_.size() ? 0 : ready_first_ + 1;
  --ready_count_;
  return first;
}

Thread* BlockRunner::take_fresh() {
  if (started_ == start_order_.size()) return nullptr;
  return &threads_[static_cast<std::size_t>(start_order_[started_++])];
}

// Runs fresh threads on this fiber (at least one), until one that slept goes on or none is left.
void BlockRunner::work(Fiber& own) {
  for (bool first = true;; first = false) {
    Thread* ready = !first && ready_first() ? take_ready() : nullptr;
    Thread* fresh = ready == nullptr ? take_fresh() : nullptr;
    if (fresh == nullptr && ready == nullptr) ready = take_ready();
    if (fresh != nullptr) {
      acquire(&begin_token_);
      fresh->fiber = &own;
      make_current(*fresh);
      body_();
      thread_done(*fresh);
      release(&end_token_);
      // A flow of its own for each thread: races between them would be hidden otherwise.
      if (EMULATION_TSAN == 0) continue;
      ready = take_ready();
      if (ready == nullptr && started_ < start_order_.size()) {
        fibers->used.push_back(&own);
        switch_to(idle_fiber());
        return;
      }
    }
    (EMULATION_TSAN != 0 ? fibers->used : fibers->idle).push_back(&own);
    if (ready != nullptr) {
      make_current(*ready);
      switch_to(*ready->fiber);
    } else {
      switch_to(fibers->main);
    }
    return;
  }
}

void BlockRunner::thread_done(Thread& thread) {
  if (!thread.copies.empty()) fault("a thread ends before its cp.async", &thread, Where::current());
  thread.state = Thread::State::kDone;
  --running_;
  const auto warp = static_cast<std::size_t>(&thread - threads_.data()) / 32;
  live_[warp] &= ~(1u << thread.lane);
  release_barrier_if_complete();
  if (waiting_[warp] == 0) return;
  for (std::size_t i = warp * 32; i < std::min(threads_.size(), warp * 32 + 32); ++i) {
    if (threads_[i].state == Thread::State::kAtLanes) release_lanes_if_complete(threads_[i]);
  }
}

void BlockRunner::go_on() {
  Thread* ready = ready_first() ? take_ready() : nullptr;
  if (ready == nullptr && started_ == start_order_.size()) ready = take_ready();
  if (ready != nullptr) {
    make_current(*ready);
    if (ready->fiber != fibers->current) switch_to(*ready->fiber);
  } else if (started_ < start_order_.size()) {
    switch_to(idle_fiber());
  } else {
    switch_to(fibers->main);  // which finds that none can go on
  }
}

void BlockRunner::release_barrier_if_complete() {
  if (at_barrier_ == 0 || at_barrier_ < running_) return;
  const Thread* first = nullptr;
  for (Thread& t : threads_) {
    if (t.state != Thread::State::kAtBarrier) continue;
    if (first == nullptr) first = &t;
    if (t.where.line != first->where.line || t.what != first->what) {
      fault("threads of a block meet at different barriers", &t, t.where);
    }
    make_ready(t);
  }
  at_barrier_ = 0;
  result_ = votes_;
  votes_ = 0;
}

int BlockRunner::meet_block(const char* what, Vote vote, bool predicate, Where where) {
  Thread& self = *running;
  const int arrived = at_barrier_++;
  if (vote == Vote::kCount) votes_ += predicate;
  if (vote == Vote::kAnd) votes_ = (arrived == 0 || votes_ != 0) && predicate;
  if (vote == Vote::kOr) votes_ = votes_ != 0 || predicate;
  self.state = Thread::State::kAtBarrier;
  self.what = what;
  self.where = where;
  self.mask = 0;
  release(&barrier_token_);
  release_barrier_if_complete();
  go_on();
  acquire(&barrier_token_);
  return result_;
}

void BlockRunner::release_lanes_if_complete(Thread& thread) {
  const auto index = static_cast<std::size_t>(&thread - threads_.data());
  Thread* warp = &threads_[index / 32 * 32];
  const std::uint32_t lanes = thread.mask & live_[index / 32];
  if ((waiting_[index / 32] & lanes) != lanes) return;
  std::uint64_t values[32] = {};
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const Thread& t = warp[std::countr_zero(rest)];
    if (t.mask != thread.mask || t.what != thread.what) return;
    values[t.lane] = t.value;
  }
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    Thread& t = warp[std::countr_zero(rest)];
    t.result = thread.combine(values, lanes, t.lane, t.argument);
    make_ready(t);
  }
  waiting_[index / 32] &= ~lanes;
}

std::uint64_t BlockRunner::meet_lanes(std::uint32_t mask, const char* what, Combine combine,
                                      std::uint64_t value, std::uint64_t argument, Where where) {
  Thread& self = *running;
  if ((mask >> self.lane & 1u) == 0) fault("a lane isn't in its own mask", &self, where);
  self.state = Thread::State::kAtLanes;
  self.what = what;
  self.where = where;
  self.mask = mask;
  self.value = value;
  self.argument = argument;
  self.combine = combine;
  const std::size_t warp = static_cast<std::size_t>(&self - threads_.data()) / 32;
  waiting_[warp] |= 1u << self.lane;
  int* token = &lane_tokens_[warp];
  release(token);
  release_lanes_if_complete(self);
  go_on();
  acquire(token);
  return self.result;
}

}  // namespace cuda_emulation
