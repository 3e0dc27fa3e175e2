// What the executor's pipelines share: tokens, stopping, time, and each worker's scratch.
#pragma once

#include <tbb/enumerable_thread_specific.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "sched/executor.h"

namespace ooc {

inline std::size_t tokens_in_flight() {
  return 2 * static_cast<std::size_t>(tbb::this_task_arena::max_concurrency());
}

inline bool stopped(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

// Adds the time of its scope to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(std::atomic<std::int64_t>& total_ns) : total_ns_(total_ns) {}
  ~Stopwatch() {
    const auto taken = std::chrono::steady_clock::now() - begin_;
    total_ns_ += std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count();
  }

 private:
  std::atomic<std::int64_t>& total_ns_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

struct Executor::Workers {
  tbb::enumerable_thread_specific<std::unique_ptr<DeviceBuffer>> scratch;
};

}  // namespace ooc
