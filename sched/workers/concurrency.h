// How much of a pass is under way at once: the driver's limits, for which a plan has memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "storage/format/tensor_layout.h"

namespace ooc {

// Tasks that are handed out at once, about.
inline std::int64_t tasks_at_once(std::int64_t workers) {
  return std::max<std::int64_t>(32, 4 * workers);
}
// With more than these no worker waits for the driving thread, which may sleep on. What frees room
// for transfers meanwhile wakes it itself.
inline std::int64_t enough_tasks(std::int64_t workers) { return tasks_at_once(workers) / 2; }
// How far a step of row-wise work, of so many tasks, may be ahead of the first one that isn't done:
// a plan has memory for what is summed meanwhile.
inline std::int64_t steps_ahead(std::int64_t workers, std::int64_t tasks) {
  return ceil_div(tasks_at_once(workers), tasks) + 1;
}

// Partials that are alive at once at most, the result among them, when leaves are begun in order,
// not more than `workers` are under way at a time, and none is begun so many leaves (`window`)
// after one that is.
std::int64_t most_partials(std::int64_t leaves, std::int64_t workers, std::int64_t window);
// The same of subtrees of whole leaves that come in order, one after the other.
std::int64_t partials_in_order(std::int64_t leaves);

}  // namespace ooc
