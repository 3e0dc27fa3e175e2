#include "sched/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "sched/plan_residency.h"
#include "storage/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

class Planner {
 public:
  Planner(const std::vector<const Program*>& programs, const GraphCounts& graph,
          const PlanOptions& options)
      : options_(options), builder_(programs, graph, options), edges_(graph) {}

  Plan make() {
    choose_splits();
    const PlanProblem problem(builder_, edges_, splits_, limit_);
    Residency residency = decide(problem);
    for (int round = 0;; ++round) {
      join_neighbours(problem.timelines(), problem.draft().pass_count(), residency);
      Plan plan = lay_out(problem, residency);
      if (place(problem.timelines(), limit_, plan)) {
        predict(problem, residency, plan);
        return plan;
      }
      OOC_CHECK(round < 64);
      const PlanProblem smaller(builder_, edges_, splits_, limit_ - limit_ / 64 * (round + 1));
      residency = decide(smaller);
    }
  }

 private:
  Residency decide(const PlanProblem& problem) {
    if (options_.strategy == Strategy::kNone) return nothing_kept(problem.timelines());
    if (problem.limit() == 0) {
      return everything_kept(problem.draft(), problem.timelines(), builder_.graph());
    }
    Residency residency = nothing_kept(problem.timelines());
    fill_memory(problem, residency);
    return residency;
  }

  void choose_splits() {
    splits_.assign(builder_.stages().size(), {options_.part_blocks, options_.slices_at_once});
    set_limit();
    while (limit_ > 0) {
      const PlanProblem problem(builder_, edges_, splits_, limit_);
      bool changed = false;
      for (int pass = 0; pass < problem.draft().pass_count(); ++pass) {
        if (problem.least(pass) <= limit_) continue;
        const PassDraft& draft = problem.draft().passes[static_cast<std::size_t>(pass)];
        PassSplit& split = splits_[static_cast<std::size_t>(draft.stage)];
        if (!draft.edges || split.part_blocks == 1) too_small();
        std::int64_t part = 1;
        while (2 * part < draft.part_blocks) part *= 2;
        if (draft.part_blocks == 1) too_small();
        split.part_blocks = part;
        changed = true;
      }
      set_limit();
      if (!changed) return;
    }
  }

  [[noreturn]] void too_small() const {
    throw BudgetError("the memory budget is too small",
                      fmt::format("--host-memory {} MiB",
                                  (options_.memory_bytes + options_.reserved_bytes) / kMiB),
                      "give more");
  }

  void set_limit() {
    const Draft draft = builder_.draft(splits_);
    reduction_bytes_ = builder_.reduction_bytes(draft);
    scratch_bytes_ = 0;
    for (const StageShape& stage : builder_.stages()) {
      scratch_bytes_ =
          std::max({scratch_bytes_, stage.pass.scratch_bytes, stage.pass.edge_scratch_bytes});
    }
    limit_ = 0;
    if (options_.memory_bytes == 0) return;
    limit_ = options_.memory_bytes - options_.workers * scratch_bytes_ - reduction_bytes_;
    if (limit_ <= 0) too_small();
  }

  Plan lay_out(const PlanProblem& problem, const Residency& residency) const {
    Plan plan;
    plan.strategy = options_.strategy;
    plan.scratch_bytes = scratch_bytes_;
    plan.reduction_bytes = reduction_bytes_;
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
      if (chunks == 0) continue;
      plan.edge_pieces.push_back(
          {direction, chunks, {0, problem.edges().memory(direction, chunks)}});
    }
    int index = 0;
    for (Section& section : plan.sections) {
      for (Pass& pass : section.passes) lay_out_pass(problem, residency, index++, pass);
    }
    return plan;
  }

  void lay_out_pass(const PlanProblem& problem, const Residency& residency, int index,
                    Pass& pass) const {
    const PassDraft& draft = problem.draft().passes[static_cast<std::size_t>(index)];
    const RingSize& ring = problem.ring(index);
    std::int64_t group = builder_.graph().edges.span_count();
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
    const auto direction = static_cast<std::size_t>(pass.propagation.direction);
    const UseMemory memory =
        problem.memory().edge_ring(index, residency.edge_chunks[direction], ring);
    pass.edge_ring.bytes = memory.bytes;
    pass.edge_slots = memory.slots;
    if (memory.slots > 0) group = std::min(group, std::max<std::int64_t>(1, memory.slots / 2));
    pass.span_group = options_.span_group > 0 ? std::min(options_.span_group, group) : group;
  }

  void predict(const PlanProblem& problem, const Residency& residency, Plan& plan) const {
    const std::vector<Traffic> traffic = problem.traffic(residency);
    std::size_t index = 0;
    for (Section& section : plan.sections) {
      for (Pass& pass : section.passes) {
        const PassDraft& draft = problem.draft().passes[index];
        pass.bytes_read = traffic[index].read;
        pass.bytes_written = traffic[index].written;
        ++index;
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
        const MachineRates& rates = options_.rates;
        const double storage = static_cast<double>(pass.bytes_read) / rates.storage_read +
                               static_cast<double>(pass.bytes_written) / rates.storage_write;
        pass.seconds =
            std::max(storage, moved / rates.memory + pass.multiply_adds / rates.multiply_adds);
        plan.bytes_read += pass.bytes_read;
        plan.bytes_written += pass.bytes_written;
        plan.bytes_moved += pass.bytes_moved;
        plan.seconds += pass.seconds;
      }
    }
  }

  const PlanOptions& options_;
  PassBuilder builder_;
  EdgeTable edges_;
  std::vector<PassSplit> splits_;
  std::int64_t limit_ = 0;  // of the arena
  std::int64_t scratch_bytes_ = 0, reduction_bytes_ = 0;
};

}  // namespace

Plan make_plan(const std::vector<const Program*>& programs, const GraphCounts& graph,
               const PlanOptions& options) {
  return Planner(programs, graph, options).make();
}

}  // namespace ooc
