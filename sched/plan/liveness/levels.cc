// Levels of a resident set, raised as far as memory goes or lowered until all fits.
#include <algorithm>

#include "sched/plan/io_chunks.h"
#include "sched/plan/liveness/problem.h"

namespace ooc {

std::int64_t whole_blocks(const Timeline& timeline, std::int64_t blocks) {
  if (blocks >= timeline.end_block) return timeline.end_block;
  return std::max(timeline.first_block, blocks / timeline.quantum * timeline.quantum);
}

namespace {

// Something that may be kept: intervals of a tensor and accesses that hold it, or edges.
struct Candidate {
  int timeline = -1;  // -1: edges
  int direction = 0;
  std::vector<int> intervals, accesses;
  double gain = 0, cost = 0;  // bytes moved; bytes times passes

  double density() const { return gain / std::max(cost, 1.0); }
};

class Filler {
 public:
  Filler(const PlanProblem& problem, ResidentSet& residency)
      : problem_(problem), residency_(residency) {}

  void run() {
    for (std::size_t t = 0; t < problem_.timelines().size(); ++t) {
      add_tensor(static_cast<int>(t));
    }
    for (const Direction direction : {Direction::kIn, Direction::kOut}) add_edges(direction);
    std::stable_sort(
        candidates_.begin(), candidates_.end(),
        [](const Candidate& a, const Candidate& b) { return a.density() > b.density(); });
    for (const Candidate& candidate : candidates_) raise(candidate);
  }

 private:
  const Timeline& timeline(int t) const {
    return problem_.timelines()[static_cast<std::size_t>(t)];
  }

  void add_tensor(int t) {
    const Timeline& line = timeline(t);
    for (int i = 0; i < line.interval_count(); ++i) add(t, {i}, {});
    for (int i = 0; i < static_cast<int>(line.accesses.size()); ++i) {
      if (line.accesses[static_cast<std::size_t>(i)].sweeps > 1) add(t, {}, {i});
    }
    std::vector<int> all;
    for (int i = 0; i < line.interval_count(); ++i) all.push_back(i);
    if (!all.empty()) add(t, all, {});
  }

  void add(int t, const std::vector<int>& intervals, std::vector<int> accesses) {
    const Timeline& line = timeline(t);
    const PlannedTensor& tensor = tensor_of(problem_, line);
    const int passes = problem_.draft().pass_count();
    Candidate candidate{t, 0, intervals, {}};
    std::size_t held = 0;
    for (const int i : intervals) {
      held += passes_between(line, i, passes).size();
      accesses.push_back(i);
      if (line.end_of(i) >= 0) accesses.push_back(line.end_of(i));
      if (line.end_of(i) >= 0) candidate.gain += 1;
    }
    std::sort(accesses.begin(), accesses.end());
    accesses.erase(std::unique(accesses.begin(), accesses.end()), accesses.end());
    for (const int i : accesses) {
      const std::int64_t sweeps = line.accesses[static_cast<std::size_t>(i)].sweeps;
      candidate.gain += static_cast<double>(std::max<std::int64_t>(sweeps - 1, 0));
    }
    const bool all = static_cast<int>(intervals.size()) == line.interval_count();
    const bool leaves = line.always_stored || line.leaves;
    if (!line.cyclic && !leaves && all) candidate.gain += 1;  // not written
    candidate.accesses = std::move(accesses);
    const auto bytes = static_cast<double>(payload_bytes(tensor, line.first_block, line.end_block));
    candidate.gain *= bytes;
    candidate.cost = bytes * static_cast<double>(held + candidate.accesses.size());
    candidates_.push_back(std::move(candidate));
  }

  void add_edges(Direction direction) {
    Candidate candidate;
    candidate.direction = static_cast<int>(direction);
    const std::int64_t first = first_chunk(problem_, direction);
    for (const PassDraft& pass : problem_.draft().passes) {
      const StageShape& stage = problem_.builder().stages()[static_cast<std::size_t>(pass.stage)];
      if (!pass.edges || stage.edge_file != direction) continue;
      candidate.gain +=
          static_cast<double>(pass.groups * problem_.sweep_bytes(direction, pass.dst_range_blocks));
    }
    candidate.cost = static_cast<double>(problem_.edges().bytes(direction, first)) *
                     static_cast<double>(problem_.draft().pass_count());
    if (candidate.gain > 0) candidates_.push_back(std::move(candidate));
  }

  ResidentSet raised(const Candidate& candidate, std::int64_t level) const {
    ResidentSet out = residency_;
    if (candidate.timeline < 0) {
      std::int64_t& chunks = out.edge_chunks[static_cast<std::size_t>(candidate.direction)];
      chunks = std::max(chunks, level);
      return out;
    }
    const Timeline& line = timeline(candidate.timeline);
    const std::int64_t blocks = whole_blocks(line, line.first_block + level * line.quantum);
    ResidentPrefix& levels = out.tensors[static_cast<std::size_t>(candidate.timeline)];
    for (const int i : candidate.intervals) {
      std::int64_t& keep = levels.keep[static_cast<std::size_t>(i)];
      keep = std::max(keep, blocks);
    }
    for (const int i : candidate.accesses) {
      std::int64_t& during = levels.during[static_cast<std::size_t>(i)];
      during = std::max(during, blocks);
    }
    return out;
  }

  // As high as it fits.
  void raise(const Candidate& candidate) {
    std::int64_t low = first_chunk(problem_, static_cast<Direction>(candidate.direction));
    std::int64_t high = problem_.edges().chunk_count();
    if (candidate.timeline >= 0) {
      const Timeline& line = timeline(candidate.timeline);
      low = 0;
      high = ceil_div(line.end_block - line.first_block, line.quantum);
    }
    ResidentSet whole = raised(candidate, high);
    if (fits(problem_, whole)) {
      residency_ = std::move(whole);
      return;
    }
    while (high - low > 1) {  // `low` fits, `high` doesn't
      const std::int64_t middle = (low + high) / 2;
      (fits(problem_, raised(candidate, middle)) ? low : high) = middle;
    }
    residency_ = raised(candidate, low);
  }

  const PlanProblem& problem_;
  ResidentSet& residency_;
  std::vector<Candidate> candidates_;
};

}  // namespace

void fill_memory(const PlanProblem& problem, ResidentSet& residency) {
  Filler(problem, residency).run();
}

namespace {

// About a percent less of a tensor in a pass; false: it has none there.
bool lower_in(const Timeline& line, int pass, int pass_count, ResidentPrefix& levels) {
  const std::int64_t step = (line.end_block - line.first_block) / 100 + 1;
  bool lowered = false;
  const auto lower = [&](std::int64_t& level) {
    if (level == line.first_block) return;
    level = whole_blocks(line, level - step);
    lowered = true;
  };
  for (std::size_t i = 0; i < line.accesses.size(); ++i) {
    if (line.accesses[i].pass == pass && !line.accesses[i].pins) lower(levels.during[i]);
  }
  for (int i = 0; i < line.interval_count(); ++i) {
    const std::vector<int> between = passes_between(line, i, pass_count);
    std::int64_t& keep = levels.keep[static_cast<std::size_t>(i)];
    if (std::find(between.begin(), between.end(), pass) != between.end()) lower(keep);
    keep = std::min(keep, levels.during[static_cast<std::size_t>(i)]);
    if (line.end_of(i) < 0) continue;
    keep = std::min(keep, levels.during[static_cast<std::size_t>(line.end_of(i))]);
  }
  return lowered;
}

}  // namespace

bool lower_pass(const PlanProblem& problem, int pass, ResidentSet& residency) {
  const auto at = static_cast<std::size_t>(pass);
  const std::int64_t before = problem.free(residency)[at];
  const int passes = problem.draft().pass_count();
  ResidentSet best;
  double best_loss = 0;
  for (std::size_t t = 0; t < problem.timelines().size(); ++t) {
    ResidentSet lower = residency;
    if (!lower_in(problem.timelines()[t], pass, passes, lower.tensors[t])) continue;
    const std::int64_t freed = problem.free(lower)[at] - before;
    const double loss =
        static_cast<double>(epoch_bytes(problem, lower) - epoch_bytes(problem, residency)) /
        static_cast<double>(std::max<std::int64_t>(freed, 1));
    if (!best.tensors.empty() && loss >= best_loss) continue;
    best_loss = loss;
    best = std::move(lower);
  }
  if (best.tensors.empty()) return false;
  residency = std::move(best);
  return true;
}

void trim(const PlanProblem& problem, ResidentSet& residency) {
  while (problem.arena().bytes > 0) {
    const std::vector<std::int64_t> left = problem.free(residency);
    const auto fullest = std::min_element(left.begin(), left.end());
    if (*fullest >= 0) return;
    if (lower_pass(problem, static_cast<int>(fullest - left.begin()), residency)) continue;
    residency.edge_chunks = problem.empty_residency().edge_chunks;
    if (!fits(problem, residency)) residency = problem.empty_residency();
    return;
  }
}

}  // namespace ooc
