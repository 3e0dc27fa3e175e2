#include "tests/support/plan_levels.h"

#include <algorithm>
#include <utility>

namespace ooc::test {
namespace {

std::int64_t pick_from(std::mt19937& random, std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}

GraphCounts small_graph(std::mt19937& random) {
  GraphCounts graph = graph_counts(pick_from(random, 40'000, 120'000), 800'000, 16384);
  graph.symmetric = pick_from(random, 0, 1) == 0;
  return graph;
}

PlanOptions small_budget(std::mt19937& random) {
  PlanOptions options;
  options.memory_bytes = pick_from(random, 16, 160) << 20;
  return options;
}

}  // namespace

std::vector<PassSplit> random_splits(const Program& program, std::int64_t most_slices,
                                     std::mt19937& random) {
  std::vector<PassSplit> splits;
  for (std::size_t stage = 0; stage < program.stages.size(); ++stage) {
    const std::int64_t blocks = pick_from(random, 0, 3);
    splits.push_back({blocks, pick_from(random, 0, most_slices)});
  }
  return splits;
}

SmallProblem::SmallProblem(Program program, std::int64_t most_slices, std::mt19937& random)
    : program_(std::move(program)),
      graph_(small_graph(random)),
      options_(small_budget(random)),
      builder_({&program_}, graph_, options_),
      edges_(graph_),
      splits_(random_splits(program_, most_slices, random)),
      problem_(builder_, edges_, splits_, 0) {}

ResidentSet random_levels(const PlanProblem& problem, std::mt19937& random) {
  ResidentSet kept = problem.empty_residency();
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return pick_from(random, least, most);
  };
  for (std::size_t t = 0; t < problem.timelines().size(); ++t) {
    const Timeline& line = problem.timelines()[t];
    ResidentPrefix& levels = kept.tensors[t];
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
