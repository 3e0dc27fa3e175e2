#include "sched/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sched/plan_cost.h"
#include "sched/plan_dp.h"
#include "sched/plan_lp.h"
#include "sched/plan_lru.h"
#include "sched/plan_residency.h"
#include "sched/plan_splits.h"
#include "storage/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

class Planner {
 public:
  Planner(const std::vector<const Program*>& programs, const GraphCounts& graph,
          const PlanOptions& options)
      : options_(options), builder_(programs, graph, options), edges_(graph) {}

  // Nothing: the least working set doesn't fit.
  std::optional<Plan> make() const {
    std::optional<Plan> best;
    for (const bool kept : {false, true}) {
      if (kept && options_.strategy == Strategy::kNone) break;
      const auto splits = choose_splits(builder_, edges_, kept);
      if (!splits) break;
      PlanProblem problem(builder_, edges_, *splits);
      Plan plan = keep_and_place(problem);
      if (!best || moved(plan) < moved(*best)) best = std::move(plan);
      if (moved(*best) == 0) break;
    }
    return best;
  }

  // The least memory that works.
  std::int64_t least_memory() const {
    const PlanProblem problem(builder_, edges_, smallest_splits(builder_));
    std::int64_t bytes = 0;
    for (int pass = 0; pass < problem.draft().pass_count(); ++pass) {
      bytes = std::max(bytes, problem.least(pass));
    }
    return bytes + options_.workers * problem.scratch_bytes() + problem.reduction_bytes();
  }

 private:
  Plan keep_and_place(PlanProblem& problem) const {
    std::optional<Plan> best;
    for (const std::int64_t percent : {0, 2, 4, 7, 11, 16}) {
      problem.reserve(problem.limit() * percent / 100);
      std::string remark;
      const std::vector<Kept> choices = decide(problem, remark);
      problem.reserve(0);
      bool changed = true;
      for (const Kept& residency : choices) {
        Plan plan = place_all(problem, residency, changed);
        plan.remark = remark;
        if (!best || moved(plan) < moved(*best)) best = std::move(plan);
      }
      if (!changed) break;
    }
    add_bounds(problem, *best);
    return std::move(*best);
  }

  static std::int64_t moved(const Plan& plan) { return plan.bytes_read + plan.bytes_written; }

  // What the strategy keeps; several, where what is better depends on the places that are found.
  std::vector<Kept> decide(const PlanProblem& problem, std::string& remark) const {
    if (options_.strategy == Strategy::kNone) return {problem.nothing()};
    Kept everything = everything_kept(problem.draft(), problem.timelines(), builder_.graph());
    if (problem.fits(everything)) return {std::move(everything)};
    if (options_.strategy == Strategy::kLru) return {choose_by_lru(problem)};
    if (options_.strategy == Strategy::kDp) return {choose_by_dp(problem, remark)};
    Kept filled = problem.nothing();
    fill_memory(problem, filled);
    return {std::move(filled), choose_by_lp(problem)};
  }

  // Gives up what finds no place; then `changed`.
  Plan place_all(PlanProblem& problem, Kept residency, bool& changed) const {
    changed = false;
    trim(problem, residency);
    while (true) {
      if (options_.strategy != Strategy::kNone) {
        join_neighbours(problem.timelines(), problem.draft().pass_count(), residency);
      }
      const std::vector<RingSize> rings = problem.rings();
      problem.widen_rings(residency);
      Plan plan = lay_out(problem, residency);
      std::vector<Piece> left = place(problem.timelines(), problem.limit(), plan);
      problem.set_rings(rings);
      if (!left.empty()) {
        plan = lay_out(problem, residency);
        left = place(problem.timelines(), problem.limit(), plan);
      }
      if (left.empty()) {
        predict(problem, residency, plan);
        return plan;
      }
      changed = true;
      give_up(problem, left, residency);
    }
  }

  // Lowers levels by what found no place; others, where that is in memory anyway.
  static void give_up(const PlanProblem& problem, const std::vector<Piece>& left, Kept& residency) {
    for (const Piece& piece : left) {
      const Timeline& line = problem.timelines()[static_cast<std::size_t>(piece.tensor)];
      Levels& levels = residency.tensors[static_cast<std::size_t>(piece.tensor)];
      const Levels before = levels;
      lower(line, piece, levels);
      if (levels.during != before.during || levels.keep != before.keep) continue;
      if (!lower_pass(problem, piece.first_pass, residency)) residency = problem.nothing();
    }
    trim(problem, residency);
  }

  // Every interval that the piece's passes reach into, and the accesses at their ends.
  static void lower(const Timeline& line, const Piece& piece, Levels& levels) {
    const auto inside = [&](int pass) {
      return piece.first_pass <= piece.last_pass
                 ? pass >= piece.first_pass && pass <= piece.last_pass
                 : pass >= piece.first_pass || pass <= piece.last_pass;
    };
    for (std::size_t i = 0; i < line.accesses.size(); ++i) {
      if (!inside(line.accesses[i].pass)) continue;
      if (levels.during[i] < piece.end_block || line.accesses[i].holds) continue;
      levels.during[i] -= piece.end_block - piece.first_block;
      levels.during[i] -= levels.during[i] % line.quantum;
    }
    for (int i = 0; i < line.interval_count(); ++i) {
      std::int64_t& keep = levels.keep[static_cast<std::size_t>(i)];
      keep = std::min(keep, levels.during[static_cast<std::size_t>(i)]);
      if (line.end_of(i) < 0) continue;
      keep = std::min(keep, levels.during[static_cast<std::size_t>(line.end_of(i))]);
    }
  }

  Plan lay_out(const PlanProblem& problem, const Kept& residency) const {
    Plan plan;
    plan.strategy = options_.strategy;
    plan.scratch_bytes = problem.scratch_bytes();
    plan.reduction_bytes = problem.reduction_bytes();
    plan.tensors = problem.draft().tensors;
    plan.sections = builder_.sections(problem.draft());
    plan.pieces = make_pieces(problem.draft(), problem.timelines(), residency);
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
      PlannedTensor& tensor = plan.tensors[t];
      if (tensor.input) continue;
      const std::int64_t blocks = tensor.layout.block_count();
      tensor.stored_from_block = stored_from(problem.timelines()[t], residency.tensors[t], blocks);
      if (tensor.stored_from_block == blocks) continue;
      plan.stored_bytes += rows_bytes(tensor, 0, blocks, 0, tensor.layout.slice_count());
    }
    for (const Direction direction : {Direction::kIn, Direction::kOut}) {
      const std::int64_t chunks = residency.edge_chunks[static_cast<std::size_t>(direction)];
      if (problem.edges().memory(direction, chunks) == 0) continue;
      plan.edge_pieces.push_back(
          {direction, chunks, {0, problem.edges().memory(direction, chunks)}});
    }
    int index = 0;
    for (Section& section : plan.sections) {
      for (Pass& pass : section.passes) lay_out_pass(problem, residency, index++, pass);
    }
    return plan;
  }

  // Spans of which what a task reads of the streamed tensors stays in the last-level cache, of
  // which 16 MiB are taken to be there: edges find their rows there. At least one.
  std::int64_t cached_spans(const Draft& draft, const PassDraft& pass) const {
    constexpr std::int64_t kCacheBytes = 16 << 20;
    const EdgeLayout& edges = builder_.graph().edges;
    std::int64_t row_bytes = 0;
    for (const UseDraft& use : pass.uses) {
      if (use.role != UseRole::kStreamed) continue;
      const PlannedTensor& tensor = draft.tensors[static_cast<std::size_t>(use.tensor)];
      const std::int64_t cols =
          use.sliced ? std::min(tensor.layout.cols, kSliceWidth) : tensor.layout.cols;
      row_bytes += cols * static_cast<std::int64_t>(dtype_bytes(tensor.dtype));
    }
    if (row_bytes == 0) return edges.span_count();
    return std::clamp<std::int64_t>(kCacheBytes / (row_bytes * edges.span_rows), 1,
                                    std::max<std::int64_t>(1, edges.span_count()));
  }

  void lay_out_pass(const PlanProblem& problem, const Kept& residency, int index,
                    Pass& pass) const {
    const PassDraft& draft = problem.draft().passes[static_cast<std::size_t>(index)];
    const RingSize& ring = problem.ring(index);
    std::int64_t group = cached_spans(problem.draft(), draft);
    for (std::size_t i = 0; i < pass.uses.size(); ++i) {
      const UseDraft& use = draft.uses[i];
      const std::int64_t during = problem.memory().during(index, use.tensor, residency);
      const UseMemory memory = problem.memory().use(index, use, during, ring);
      pass.uses[i].memory.bytes = memory.bytes;
      pass.uses[i].slots = memory.slots;
      if (use.role != UseRole::kStreamed || memory.slots == 0) continue;
      const EdgeLayout& edges = builder_.graph().edges;
      const PlannedTensor& tensor = problem.draft().tensors[static_cast<std::size_t>(use.tensor)];
      const std::int64_t spans = std::max<std::int64_t>(
          1, tensor.unit_blocks * edges.block_rows / edges.span_rows);  // of an item
      group = std::min(group, std::max<std::int64_t>(1, memory.slots / 2 * spans));
    }
    if (!draft.edges) return;
    const auto direction = static_cast<std::size_t>(
        problem.builder().stages()[static_cast<std::size_t>(draft.stage)].edge_file);
    const UseMemory memory =
        problem.memory().edge_ring(index, residency.edge_chunks[direction], ring);
    pass.edge_ring.bytes = memory.bytes;
    pass.edge_slots = memory.slots;
    if (memory.slots > 0) group = std::min(group, std::max<std::int64_t>(1, memory.slots / 2));
    pass.span_group = options_.span_group > 0 ? std::min(options_.span_group, group) : group;
  }

  void predict(const PlanProblem& problem, const Kept& residency, Plan& plan) const {
    const std::vector<Traffic> traffic = problem.traffic(residency);
    std::size_t index = 0;
    for (Section& section : plan.sections) {
      for (Pass& pass : section.passes) {
        const PassDraft& draft = problem.draft().passes[index];
        pass.bytes_read = traffic[index].read;
        pass.bytes_written = traffic[index].written;
        const StageShape& stage = builder_.stages()[static_cast<std::size_t>(draft.stage)];
        double moved = draft.edges ? stage.edge_bytes_moved : 0;
        for (const UseDraft& use : draft.uses) {
          if (use.role == UseRole::kStreamed || use.tensor < 0) continue;
          const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(use.tensor)];
          moved += static_cast<double>(payload_bytes(tensor, 0, tensor.layout.block_count()));
        }
        pass.bytes_moved = static_cast<std::int64_t>(moved);
        pass.multiply_adds = (draft.edges ? stage.edge_multiply_adds : 0) +
                             (draft.rows ? stage.row_multiply_adds : 0);
        pass.seconds = std::max(storage_seconds(traffic[index], options_.rates),
                                compute_seconds(work_of(builder_, draft), options_.rates));
        ++index;
        plan.bytes_read += pass.bytes_read;
        plan.bytes_written += pass.bytes_written;
        plan.bytes_moved += pass.bytes_moved;
        plan.seconds += pass.seconds;
      }
    }
  }

  void add_bounds(const PlanProblem& problem, Plan& plan) const {
    std::vector<double> seconds;
    for (const PassDraft& pass : problem.draft().passes) {
      seconds.push_back(compute_seconds(work_of(builder_, pass), options_.rates));
    }
    plan.bound_bytes = std::min(static_cast<std::int64_t>(least_bytes(problem).value_or(0)),
                                plan.bytes_read + plan.bytes_written);
    plan.bound_seconds = std::min(least_seconds(problem, seconds), plan.seconds);
  }

  const PlanOptions& options_;
  PassBuilder builder_;
  EdgeTable edges_;
};

}  // namespace

namespace {

// Budgets are named as users write them, in MiB.
class BudgetSearch {
 public:
  BudgetSearch(const std::vector<const Program*>& programs, const GraphCounts& graph,
               const PlanOptions& options)
      : programs_(programs), graph_(graph), options_(options) {}

  [[noreturn]] void fail() {
    const std::int64_t given = (options_.memory_bytes + options_.reserved_bytes) / kMiB;
    const std::int64_t least = ceil_div(
        Planner(programs_, graph_, options_).least_memory() + options_.reserved_bytes, kMiB);
    std::int64_t works = least;
    while (!seconds(works)) ++works;
    options_.memory_bytes = 0;
    const double unlimited = Planner(programs_, graph_, options_).make()->seconds;
    BudgetError error(
        fmt::format("a memory budget of {} MiB is too small: the least that works is {} MiB", given,
                    works),
        "--host-memory",
        fmt::format("give {} MiB or more; with {} MiB an epoch is predicted to take at most twice "
                    "as long as with all data in memory",
                    works, good(works, 2 * unlimited)));
    error.least_bytes = works << 20;
    throw error;
  }

 private:
  // Of a predicted epoch; nothing: it doesn't fit.
  std::optional<double> seconds(std::int64_t budget) const {
    PlanOptions options = options_;
    options.memory_bytes = budget * kMiB - options.reserved_bytes;
    if (options.memory_bytes <= 0) return std::nullopt;
    const std::optional<Plan> plan = Planner(programs_, graph_, options).make();
    if (!plan) return std::nullopt;
    return plan->seconds;
  }

  // A budget within so many seconds; a few percent below it is none.
  std::int64_t good(std::int64_t least, double limit) const {
    std::int64_t low = least, high = least;
    while (seconds(high).value_or(2 * limit + 1) > limit) {
      low = high;
      high *= 2;
    }
    while (high - low > std::max<std::int64_t>(high / 50, 1)) {
      const std::int64_t middle = (low + high) / 2;
      (seconds(middle).value_or(2 * limit + 1) <= limit ? high : low) = middle;
    }
    return high;
  }

  const std::vector<const Program*>& programs_;
  const GraphCounts& graph_;
  PlanOptions options_;
};

}  // namespace

Plan make_plan(const std::vector<const Program*>& programs, const GraphCounts& graph,
               const PlanOptions& options) {
  std::optional<Plan> plan = Planner(programs, graph, options).make();
  if (!plan) BudgetSearch(programs, graph, options).fail();
  return std::move(*plan);
}

}  // namespace ooc
