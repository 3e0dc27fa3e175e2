#include "tests/support/plan_levels.h"

#include <algorithm>

namespace ooc::test {

Kept random_levels(const PlanProblem& problem, std::mt19937& random) {
  Kept kept = problem.nothing();
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (std::size_t t = 0; t < problem.timelines().size(); ++t) {
    const Timeline& line = problem.timelines()[t];
    Levels& levels = kept.tensors[t];
    const auto level = [&](std::int64_t least) {
      const std::int64_t kind = pick(0, 3);
      if (kind == 0) return line.end_block;
      if (kind < 3) return least;
      return std::max(least, whole_blocks(line, pick(least, line.end_block)));
    };
    for (std::int64_t& keep : levels.keep) keep = level(line.first_block);
    for (int i = 0; i < line.interval_count(); ++i) {
      for (const int access : {i, line.end_of(i)}) {
        if (access < 0) continue;
        std::int64_t& during = levels.during[static_cast<std::size_t>(access)];
        during = std::max(during, levels.keep[static_cast<std::size_t>(i)]);
      }
    }
    for (std::int64_t& during : levels.during) during = level(during);
  }
  const std::int64_t chunks = problem.edges().chunk_count();
  for (std::int64_t& first : kept.edge_chunks) first = pick(0, 2) == 0 ? chunks : pick(0, chunks);
  return kept;
}

}  // namespace ooc::test
