// --threads: how many threads of the CPU work.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace ooc::cli {

// Calls work() in an arena of `threads` threads (more than there are cores if asked for), or of as
// many as there are cores. Beside them one more may run: the one that drives them.
void run_with_threads(std::optional<std::int64_t> threads, const std::function<void()>& work);

}  // namespace ooc::cli
