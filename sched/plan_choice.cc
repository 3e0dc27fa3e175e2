#include "sched/plan_choice.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "sched/plan_lp.h"
#include "sched/plan_splits.h"

namespace ooc {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Two parts at once save so much of an epoch's time in a pass, and move at most so many bytes more.
constexpr double kLeastSaved = 0.01, kMostMoved = 1.1;
constexpr std::int64_t kMany = 1000;   // parts
constexpr double kMostSeconds = 1.01;  // that smaller rings may take, of those of larger ones

class WorkingTierChoice {
 public:
  WorkingTierChoice(const PassBuilder& builder, const EdgeTable& edges)
      : builder_(builder), edges_(edges) {}

  std::optional<WorkingTier> run() {
    const Strategy strategy = builder_.options().strategy;
    for (const bool kept : {false, true}) {
      if (kept && strategy == Strategy::kNone) break;
      const auto splits = choose_splits(builder_, edges_, kept);
      if (!splits || (best_ && best_->splits == *splits)) break;
      PlanProblem problem(builder_, edges_, *splits);
      take(*splits, plan_tier(problem));
      if (moved_bytes(best_->tier) == 0) break;
    }
    const bool limited = builder_.options().memory_bytes != 0;
    if (!best_ || !limited) return std::move(best_);
    const PlanOptions& options = builder_.options();
    const bool forced =
        options.part_blocks > 0 || options.slices_at_once > 0 || options.parts_at_once > 0;
    // Below a device's memory more bytes may cost more than this tier knows.
    if (!forced && !options.device && strategy != Strategy::kLp) pipeline();
    if (strategy != Strategy::kLp) return std::move(best_);
    try_fewer_reuses();
    try_smaller_rings();
    return std::move(best_);
  }

 private:
  void take(const std::vector<PassSplit>& splits, TierPlan tier) {
    if (best_ && moved_bytes(tier) >= moved_bytes(best_->tier)) return;
    best_ = WorkingTier{splits, std::move(tier)};
  }

  // Smaller parts, two at once, where a pass whose transfers and compute would overlap as a whole
  // might save a good share of the epoch: the most first.
  void pipeline() {
    const PlanProblem problem(builder_, edges_, best_->splits);
    const std::vector<PassDraft>& passes = problem.draft().passes;
    double least = seconds(problem, best_->tier, planned(best_->tier.plan));
    const auto most =
        static_cast<std::int64_t>(kMostMoved * static_cast<double>(moved_bytes(best_->tier)));
    std::vector<std::pair<double, const PassDraft*>> found;
    const std::vector<Traffic> traffic = problem.traffic(best_->tier.kept);
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const StageShape& stage = builder_.stages()[static_cast<std::size_t>(passes[i].stage)];
      if (!passes[i].edges || !stage.edge_reductions.empty()) continue;
      const PhaseSeconds transfers = transfer_seconds(traffic[i], rates_below());
      const PhaseSeconds compute = compute_seconds(builder_, passes[i]);
      const RingDepth best{kNever, kNever};
      const double saved = overlapped_seconds(transfers, compute, best) -
                           overlapped_seconds(transfers, compute, best, kMany);
      if (saved > kLeastSaved * least) found.emplace_back(saved, &passes[i]);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [saved, pass] : found) least = try_parts_at_once(*pass, most, least);
  }

  // Returns what an epoch then takes; `least`: now. It moves `most` bytes at most.
  double try_parts_at_once(const PassDraft& pass, std::int64_t most, double least) {
    const std::vector<PassSplit> splits = best_->splits;
    std::int64_t last = 0;  // blocks of a part: they may be more than asked for
    for (const std::int64_t times : {1, 2, 4, 8}) {
      std::vector<PassSplit> smaller = splits;
      PassSplit& split = smaller[static_cast<std::size_t>(pass.stage)];
      split.part_blocks = ceil_div(pass.part_blocks, times);
      split.parts_at_once = 2;
      PlanProblem problem(builder_, edges_, smaller);
      const std::vector<PassDraft>& passes = problem.draft().passes;
      const auto draft = std::find_if(passes.begin(), passes.end(), [&](const PassDraft& other) {
        return other.stage == pass.stage && other.edges;
      });
      if (draft->parts_at_once == 1 ||
          draft->part_blocks == std::exchange(last, draft->part_blocks) ||
          !problem.fits(problem.nothing())) {
        continue;
      }
      TierPlan tier = plan_tier(problem);
      if (moved_bytes(tier) > most) break;
      const double taken = seconds(problem, tier, planned(tier.plan));
      if (taken > (1 - kLeastSaved / 2) * least) continue;
      least = taken;
      best_ = WorkingTier{smaller, std::move(tier)};
    }
    return least;
  }

  // Where places cost bytes: without each of the pairs that it isn't worse without.
  void try_fewer_reuses() {
    constexpr double kGood = 1.01;
    const std::vector<PassSplit> splits = best_->splits;
    PlanProblem problem(builder_, edges_, splits);
    reuses_ = problem.reuses();
    const double likely = likely_bytes(problem).value_or(0);
    for (std::size_t i = reuses_.size(); i-- > 0;) {
      if (static_cast<double>(moved_bytes(best_->tier)) <= kGood * likely) return;
      std::vector<Reuse> fewer = reuses_;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      problem.set_reuses(fewer);
      if (!problem.fits(problem.nothing())) continue;
      TierPlan tier = plan_tier(problem);
      if (moved_bytes(tier) > moved_bytes(best_->tier)) continue;
      reuses_ = std::move(fewer);
      take(splits, std::move(tier));
    }
  }

  void try_smaller_rings() {
    const std::vector<PassSplit> splits = best_->splits;
    const TierPlan larger = best_->tier;
    const double most =
        kMostSeconds * seconds(PlanProblem(builder_, edges_, splits), larger, planned(larger.plan));
    for (int rings = PlanProblem::kRingChoices - 2; rings >= 0; --rings) {
      PlanProblem problem(builder_, edges_, splits, rings);
      problem.set_reuses(reuses_);
      const auto least = [&](int index, const Pass& pass) {
        return least_depth(problem, index, pass);
      };
      if (moved_bytes(best_->tier) == 0 || seconds(problem, larger, least) > most) return;
      TierPlan tier = plan_tier(problem);
      if (seconds(problem, tier, planned(tier.plan)) > most) continue;
      take(splits, std::move(tier));
    }
  }

  std::function<RingDepth(int, const Pass&)> planned(const Plan& plan) const {
    return [this, &plan](int, const Pass& pass) {
      return ring_depth(plan, builder_.graph().edges, pass);
    };
  }

  // As if storage were below this memory.
  TransferRates rates_below() const {
    const MachineRates& rates = builder_.options().rates;
    return builder_.options().device ? link_rates(rates) : storage_rates(rates);
  }

  // Predicted.
  double seconds(const PlanProblem& problem, const TierPlan& tier,
                 const std::function<RingDepth(int, const Pass&)>& depth) const {
    const std::vector<Traffic> traffic = problem.traffic(tier.kept);
    double sum = 0;
    int index = 0;
    for (const Section& section : tier.plan.sections) {
      for (const Pass& pass : section.passes) {
        const auto at = static_cast<std::size_t>(index);
        const PassDraft& draft = problem.draft().passes[at];
        sum += overlapped_seconds(transfer_seconds(traffic[at], rates_below()),
                                  compute_seconds(builder_, draft), depth(index, pass),
                                  pipelined_parts(draft));
        ++index;
      }
    }
    return sum;
  }

  // If what streams through rings did so through those of the problem, span after span.
  static RingDepth least_depth(const PlanProblem& problem, int index, const Pass& pass) {
    const PassDraft& draft = problem.draft().passes[static_cast<std::size_t>(index)];
    RingDepth depth{kNever, kNever};
    const RowGrain grain(pass.step_rows, pass.uses, problem.draft().tensors);
    for (std::size_t i = 0; i < pass.uses.size(); ++i) {
      if (pass.uses[i].slots == 0) continue;
      const UseDraft& use = draft.uses[i];
      const std::int64_t slots = problem.memory().use(index, use, 0, problem.ring(index)).slots;
      if (use.role == UseRole::kStreamed) {
        depth.edges = std::min(depth.edges, static_cast<double>(slots));
      } else {
        const PlannedTensor& tensor = problem.draft().tensors[static_cast<std::size_t>(use.tensor)];
        depth.rows = std::min(depth.rows, grain.depth(tensor, slots / tensor.layout.slice_count()));
      }
    }
    if (pass.edge_slots == 0) return depth;
    const UseMemory ring = problem.memory().edge_ring(index, 0, problem.ring(index));
    depth.edges = std::min(depth.edges, static_cast<double>(ring.slots));
    return depth;
  }

  const PassBuilder& builder_;
  const EdgeTable& edges_;
  std::optional<WorkingTier> best_;
  std::vector<Reuse> reuses_;  // of the best one's splits
};

}  // namespace

std::optional<WorkingTier> choose_working_tier(const PassBuilder& builder, const EdgeTable& edges) {
  return WorkingTierChoice(builder, edges).run();
}

RingDepth ring_depth(const Plan& plan, const EdgeLayout& edges, const Pass& pass) {
  RingDepth depth{kNever, kNever};
  const auto take = [&](std::int64_t slots, std::int64_t at_once) {
    depth.edges = std::min(depth.edges, static_cast<double>(slots) / static_cast<double>(at_once));
  };
  const RowGrain grain(pass.step_rows, pass.uses, plan.tensors);
  for (const TensorUse& use : pass.uses) {
    if (use.slots == 0) continue;
    const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(use.tensor)];
    if (use.role == UseRole::kStreamed) {
      const std::int64_t item_rows =
          std::max(tensor.unit_blocks * tensor.layout.block_rows, edges.span_rows);
      take(use.slots, ceil_div(pass.span_group * edges.span_rows, item_rows));
    } else {
      depth.rows =
          std::min(depth.rows, grain.depth(tensor, use.slots / tensor.layout.slice_count()));
    }
  }
  if (pass.edge_slots > 0) take(pass.edge_slots, pass.span_group);
  return depth;
}

}  // namespace ooc
