// Tasks that begin in order, in the caller's TBB arena.
#pragma once

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace ooc {

// Calls work(task, lane) for tasks 0 to count - 1. Those of a lane, fewer than `lanes`, run one
// after the other. Returns when all are done; what one throws is thrown here.
template <class Work>
void run_in_order(std::int64_t count, std::int64_t lanes, Work&& work) {
  std::atomic<std::int64_t> next{0};
  const auto run_lane = [&](std::int64_t lane) {
    for (std::int64_t task = next++; task < count; task = next++) work(task, lane);
  };
  const std::int64_t used = std::min(count, lanes);
  if (used <= 1) return run_lane(0);
  tbb::parallel_for(std::int64_t{0}, used, run_lane, tbb::simple_partitioner{});
}

}  // namespace ooc
