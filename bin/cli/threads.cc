#include "bin/cli/threads.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

namespace ooc::cli {

void run_with_threads(std::optional<std::int64_t> threads, const std::function<void()>& work) {
  if (!threads) {
    work();
    return;
  }
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(*threads) + 1);
  tbb::task_arena(static_cast<int>(*threads)).execute(work);
}

}  // namespace ooc::cli
