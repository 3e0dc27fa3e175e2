// --threads: how many threads of the CPU work.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <cstdint>
#include <optional>

namespace ooc::cli {

// Calls work() in an arena of `threads` threads (more than there are cores if asked for), or of as
// many as there are cores. Beside them one more may run: the one that drives them.
template <class Work>
void run_with_threads(std::optional<std::int64_t> threads, Work&& work) {
  if (!threads) {
    work();
    return;
  }
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(*threads) + 1);
  tbb::task_arena(static_cast<int>(*threads)).execute(work);
}

}  // namespace ooc::cli
