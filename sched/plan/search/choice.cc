#include "sched/plan/search/choice.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "sched/plan/io_chunks.h"
#include "sched/plan/residency/lp.h"
#include "sched/plan/search/splits.h"
#include "sched/plan/span_windows.h"

namespace ooc {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Other destination ranges of a pass might save so much of what an epoch takes, do save so much,
// and move at most so many bytes more.
constexpr double kMightSave = 0.01, kLeastSaved = 0.0025, kMostMoved = 1.15;
// By other splits of all passes.
constexpr double kLeastSavedByOthers = 0.01;
constexpr std::size_t kMostTried = 24;  // passes, in either way
constexpr std::int64_t kMany = 1000;    // destination ranges
constexpr std::int64_t kWideSpans = 6;  // windows of four, and two steps to the next one
constexpr double kMostSeconds = 1.01;   // that smaller slots may take, of those of larger ones

// Of a tensor in a pass, where a slots is so deep for the rows that no resident range holds: those
// that one holds keep no worker waiting.
double depth_of_all(const Plan& plan, int tensor, int pass, double slot_counts) {
  if (slot_counts >= 1) return slot_counts;
  std::int64_t held = 0;
  for (const ResidentRange& range : plan.devices[0].ranges) {
    if (range.tensor == tensor && is_alive(range, pass))
      held += range.end_block - range.first_block;
  }
  const auto all =
      static_cast<double>(plan.tensors[static_cast<std::size_t>(tensor)].layout.block_count());
  const double streams = 1 - static_cast<double>(held) / all;
  return 1 / (streams / slot_counts + 1 - streams);
}

// What is folded of the next destination range while the sums of one leave, as a share of its
// spans.
double folded_meanwhile(const EdgeLayout& edges, const Pass& pass, const PassMemory& memory) {
  if (pass.dst_ranges_at_once > 1) return 1;
  bool follows = true;  // EdgePhase::may_begin()
  for (std::size_t i = 0; i < pass.uses.size(); ++i) {
    if (pass.uses[i].role == UseRole::kResident && memory.uses[i].bytes > 0) follows = false;
  }
  return follows ? static_cast<double>(pass.span_group) /
                       static_cast<double>(std::max(pass.span_group, edges.span_count()))
                 : 0;
}

class WorkingTierChoice {
 public:
  WorkingTierChoice(const PassBuilder& builder, const EdgeTable& edges)
      : builder_(builder), edges_(edges) {}

  std::optional<WorkingTier> run() {
    const PlanOptions& options = builder_.options();
    for (const bool kept : {false, true}) {
      if (kept && options.strategy != Strategy::kLp) break;
      const auto splits = choose_splits(builder_, edges_, kept, Zeros::kMoved);
      if (!splits || (best_ && best_->splits == *splits)) break;
      std::optional<WorkingTier> other = std::exchange(best_, std::nullopt);
      PlanProblem problem(builder_, edges_, *splits);
      take(*splits, plan_tier(problem));
      if (!is_long()) save_bytes();
      if (other && moved_bytes(other->tier) <= moved_bytes(best_->tier)) best_ = std::move(other);
      if (moved_bytes(best_->tier) == 0) break;
    }
    if (best_ && is_long()) save_bytes();
    const bool forced = options.dst_range_blocks > 0 || options.slices_at_once > 0 ||
                        options.dst_ranges_at_once > 0;
    const bool limited = best_ && options.memory_bytes != 0;
    // Below a device's memory more bytes may cost more than this tier knows.
    if (limited && !forced && !options.device && options.strategy != Strategy::kLp) {
      const std::vector<PassSplit> splits = best_->splits;
      try_dst_ranges();
      try_other_splits({splits});
    }
    return std::move(best_);
  }

 private:
  // A linear program then takes seconds: what a plan is the best without is tried for one alone.
  bool is_long() const { return builder_.stages().size() > kLongProgram; }

  void save_bytes() {
    const PlanOptions& options = builder_.options();
    if (options.memory_bytes == 0 || options.strategy != Strategy::kLp) return;
    try_fewer_aliases();
    try_fewer_slots();
  }

  void take(const std::vector<PassSplit>& splits, TierPlan tier) {
    if (best_ && moved_bytes(tier) >= moved_bytes(best_->tier)) return;
    best_ = WorkingTier{splits, std::move(tier)};
  }

  // Splits that move few bytes once zeros are left out, or with nothing kept, where that is
  // predicted to be faster. `tried`: those that the best ones, with other destination ranges, come
  // from.
  void try_other_splits(std::vector<std::vector<PassSplit>> tried) {
    if (moved_bytes(best_->tier) == 0) return;
    WorkingTier now = std::move(*std::exchange(best_, std::nullopt));
    double least = (1 - kLeastSavedByOthers) * seconds(now);
    for (const bool kept : {false, true}) {
      if (kept && (builder_.options().strategy == Strategy::kNone || is_long())) break;
      const auto splits = choose_splits(builder_, edges_, kept, Zeros::kLeftOut);
      if (!splits) break;
      if (std::find(tried.begin(), tried.end(), *splits) != tried.end()) continue;
      tried.push_back(*splits);
      PlanProblem problem(builder_, edges_, *splits);
      best_ = WorkingTier{*splits, plan_tier(problem)};
      try_dst_ranges();
      const double taken = seconds(*best_);
      if (taken > least) continue;
      least = taken;
      now = std::move(*best_);
    }
    best_ = std::move(now);
  }

  double seconds(const WorkingTier& tier) const {
    return seconds(PlanProblem(builder_, edges_, tier.splits), tier.tier, planned(tier.tier.plan));
  }

  // What smaller destination ranges of a pass might save of an epoch.
  struct Gain {
    double seconds = 0;
    const PassDraft* pass = nullptr;
    std::int64_t dst_ranges_at_once = 1;
  };

  // Splits are chosen by bytes; smaller destination ranges move more, but leave memory for two at
  // once, whose transfers and compute overlap as a whole, or for deeper slots. The most promising
  // ones first.
  void try_dst_ranges() {
    const PlanProblem problem(builder_, edges_, best_->splits);
    double least = seconds(*best_);
    const auto most =
        static_cast<std::int64_t>(kMostMoved * static_cast<double>(moved_bytes(best_->tier)));
    std::vector<Gain> gains = gains_of_dst_ranges(problem, least);
    std::stable_sort(gains.begin(), gains.end(),
                     [](const Gain& a, const Gain& b) { return a.seconds > b.seconds; });
    gains.resize(std::min(gains.size(), kMostTried));
    for (const Gain& gain : gains) least = try_dst_ranges_of(gain, most, least);
  }

  std::vector<Gain> gains_of_dst_ranges(const PlanProblem& problem, double least) const {
    std::vector<Gain> gains;
    const ResidentSet& kept = best_->tier.kept;
    const std::vector<PhaseSeconds> transfers = transfers_of(problem, kept, rates_below());
    const Plan& plan = best_->tier.plan;
    const std::vector<PhaseSeconds> compute =
        compute_of(problem, kept, transfers, windows_of(plan));
    const std::vector<PhaseSeconds> least_compute =
        compute_of(problem, kept, transfers, widest_windows(problem));
    std::size_t next = 0;
    for (const Section& section : plan.sections) {
      for (const Pass& pass : section.passes) {
        const std::size_t at = next++;
        const PassDraft& draft = problem.draft().passes[at];
        const StageShape& stage = builder_.stages()[static_cast<std::size_t>(draft.stage)];
        if (!draft.edges) continue;
        const SlotDepth deep{kNever, kNever};
        const double apart = overlapped_seconds(transfers[at], least_compute[at], deep);
        const double together = overlapped_seconds(transfers[at], least_compute[at], deep, kMany);
        const SlotDepth depth = depth_in(plan, static_cast<int>(at), pass);
        const double now = overlapped_seconds(transfers[at], compute[at], depth);
        const auto add = [&](double saved, std::int64_t at_once) {
          if (saved > kMightSave * least) gains.push_back({saved, &draft, at_once});
        };
        if (stage.edge_reductions.empty()) add(apart - together, 2);
        add(now - apart, 1);
      }
    }
    return gains;
  }

  // Returns what an epoch then takes; `least`: now. It moves `most` bytes at most.
  double try_dst_ranges_of(const Gain& gain, std::int64_t most, double least) {
    const std::vector<PassSplit> splits = best_->splits;
    const auto stage = static_cast<std::size_t>(gain.pass->stage);
    const std::int64_t slices = splits[stage].slices_at_once;
    std::vector<PassSplit> tried{{gain.pass->dst_range_blocks, slices}, splits[stage]};
    for (const PassSplit& split : smaller_dst_ranges(gain, slices)) {
      std::vector<PassSplit> smaller = splits;
      smaller[stage] = split;
      PlanProblem problem(builder_, edges_, smaller);
      const std::vector<PassDraft>& passes = problem.draft().passes;
      const auto draft = std::find_if(passes.begin(), passes.end(), [&](const PassDraft& other) {
        return other.stage == gain.pass->stage && other.edges;
      });
      const auto index = static_cast<int>(draft - passes.begin());
      if (draft->dst_ranges_at_once != gain.dst_ranges_at_once ||
          !fits(problem, problem.empty_residency()))
        continue;
      // A wide slots may not fit, or the pass have a wider one anyway; and blocks of a destination
      // range may be more than asked for.
      if (split.slot_spans > 0 && problem.slot_counts(index).spans != split.slot_spans) continue;
      PassSplit& now = smaller[stage];
      now.dst_range_blocks = draft->dst_range_blocks;
      if (std::find(tried.begin(), tried.end(), now) != tried.end()) continue;
      tried.push_back(now);
      TierPlan tier = plan_tier(problem);
      if (moved_bytes(tier) > most) {
        if (split.slot_spans == 0) break;  // still smaller destination ranges move still more
        continue;
      }
      const double taken = seconds(problem, tier, planned(tier.plan));
      if (taken > (1 - kLeastSaved) * least) continue;
      least = taken;
      best_ = WorkingTier{smaller, std::move(tier)};
    }
    return least;
  }

  // What stays takes the most of the memory that smaller destination ranges leave: slots are tried
  // as memory is left for them, and wide whatever then stays less.
  std::vector<PassSplit> smaller_dst_ranges(const Gain& gain, std::int64_t slices) const {
    const PassDraft& pass = *gain.pass;
    std::vector<PassSplit> splits;
    if (gain.dst_ranges_at_once > 1) {
      for (const std::int64_t halved : {1, 2, 4, 8})
        splits.push_back(
            {ceil_div(pass.dst_range_blocks, halved), slices, gain.dst_ranges_at_once});
      return splits;
    }
    for (const std::int64_t more : {0, 1, 2, 3, 4}) {
      const std::int64_t blocks = ceil_div(builder_.share().own.count(), pass.dst_ranges + more);
      for (const std::int64_t spans : {std::int64_t{0}, kWideSpans}) {
        if (more + spans > 0) splits.push_back({blocks, slices, 1, spans});
      }
    }
    return splits;
  }

  // Where places cost bytes: without each of the pairs that it isn't worse without.
  void try_fewer_aliases() {
    constexpr double kGood = 1.01;
    const std::vector<PassSplit> splits = best_->splits;
    PlanProblem problem(builder_, edges_, splits);
    aliases_ = problem.aliases();
    const double likely = likely_bytes(problem).value_or(0);
    for (std::size_t i = aliases_.size(); i-- > 0;) {
      if (static_cast<double>(moved_bytes(best_->tier)) <= kGood * likely) return;
      std::vector<InPlaceAlias> fewer = aliases_;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      problem.set_aliases(fewer);
      if (!fits(problem, problem.empty_residency())) continue;
      TierPlan tier = plan_tier(problem);
      if (moved_bytes(tier) > moved_bytes(best_->tier)) continue;
      aliases_ = std::move(fewer);
      take(splits, std::move(tier));
    }
  }

  void try_fewer_slots() {
    const std::vector<PassSplit> splits = best_->splits;
    const TierPlan larger = best_->tier;
    const double most =
        kMostSeconds * seconds(PlanProblem(builder_, edges_, splits), larger, planned(larger.plan));
    for (int all_slot_counts = kSlotChoices - 2; all_slot_counts >= 0; --all_slot_counts) {
      PlanProblem problem(builder_, edges_, splits, all_slot_counts);
      problem.set_aliases(aliases_);
      const auto least = [&](int index, const Pass& pass) {
        return least_depth(problem, larger.plan, index, pass);
      };
      if (moved_bytes(best_->tier) == 0 || seconds(problem, larger, least) > most) return;
      TierPlan tier = plan_tier(problem);
      if (seconds(problem, tier, planned(tier.plan)) > most) continue;
      take(splits, std::move(tier));
    }
  }

  std::function<SlotDepth(int, const Pass&)> planned(const Plan& plan) const {
    return [this, &plan](int index, const Pass& pass) { return depth_in(plan, index, pass); };
  }
  SlotDepth depth_in(const Plan& plan, int index, const Pass& pass) const {
    return slot_depth(plan, builder_.graph().edges, builder_.options().workers, index, pass);
  }

  // As if storage were below this memory.
  TransferRates rates_below() const {
    const MachineRates& rates = builder_.options().rates;
    return builder_.options().device ? link_rates(rates) : storage_rates(rates);
  }

  // Predicted.
  double seconds(const PlanProblem& problem, const TierPlan& tier,
                 const std::function<SlotDepth(int, const Pass&)>& depth) const {
    const std::vector<PhaseSeconds> transfers = transfers_of(problem, tier.kept, rates_below());
    const std::vector<PhaseSeconds> compute =
        compute_of(problem, tier.kept, transfers, windows_of(tier.plan));
    double sum = 0;
    int index = 0;
    for (const Section& section : tier.plan.sections) {
      for (const Pass& pass : section.passes) {
        const auto at = static_cast<std::size_t>(index);
        const PassDraft& draft = problem.draft().passes[at];
        sum += overlapped_seconds(transfers[at], compute[at], depth(index, pass),
                                  pipelined_dst_ranges(draft));
        ++index;
      }
    }
    return sum;
  }

  // If what streams through slots in the plan did so through those of the problem, span after span,
  // in the plan's windows.
  SlotDepth least_depth(const PlanProblem& problem, const Plan& plan, int index,
                        const Pass& pass) const {
    const PassDraft& draft = problem.draft().passes[static_cast<std::size_t>(index)];
    const PassMemory& memory = plan.devices[0].passes[static_cast<std::size_t>(index)];
    SlotDepth depth{kNever, kNever, folded_meanwhile(builder_.graph().edges, pass, memory)};
    const RowGrain grain(pass.step_rows, pass.uses, problem.draft().tensors);
    const std::int64_t in_work =
        rows_in_work(builder_.options().workers, pass.step_rows, pass.group_rows);
    for (std::size_t i = 0; i < pass.uses.size(); ++i) {
      if (memory.uses[i].slots == 0) continue;
      const UseDraft& use = draft.uses[i];
      const std::int64_t slots =
          problem.memory().use(index, use, 0, problem.slot_counts(index)).slots;
      if (use.role == UseRole::kStreamed) {
        depth.edges = std::min(depth.edges, static_cast<double>(slots));
      } else {
        const PlannedTensor& tensor = problem.draft().tensors[static_cast<std::size_t>(use.tensor)];
        const double slot_counts =
            grain.depth(tensor, slots / tensor.layout.slice_count(), in_work);
        depth.rows = std::min(depth.rows, depth_of_all(plan, use.tensor, index, slot_counts));
      }
    }
    if (memory.edges.slots == 0) return depth;
    const UseMemory slot_counts =
        problem.memory().edge_slot_memory(index, 0, problem.slot_counts(index));
    const EdgeSlots chunks(builder_.graph().edges, pass.dst_range_blocks,
                           slot_counts.bytes / slot_counts.slots);
    depth.edges = std::min(depth.edges, chunks.spans(slot_counts.slots));
    return depth;
  }

  const PassBuilder& builder_;
  const EdgeTable& edges_;
  std::optional<WorkingTier> best_;
  std::vector<InPlaceAlias> aliases_;  // of the best one's splits
};

}  // namespace

std::optional<WorkingTier> choose_working_tier(const PassBuilder& builder, const EdgeTable& edges) {
  return WorkingTierChoice(builder, edges).run();
}

SlotDepth slot_depth(const Plan& plan, const EdgeLayout& edges, std::int64_t workers, int index,
                     const Pass& pass) {
  const PassMemory& memory = plan.devices[0].passes[static_cast<std::size_t>(index)];
  SlotDepth depth{kNever, kNever, folded_meanwhile(edges, pass, memory)};
  const RowGrain grain(pass.step_rows, pass.uses, plan.tensors);
  const std::int64_t in_work = rows_in_work(workers, pass.step_rows, pass.group_rows);
  for (std::size_t i = 0; i < pass.uses.size(); ++i) {
    const TensorUse& use = pass.uses[i];
    const std::int64_t slots = memory.uses[i].slots;
    if (slots == 0) continue;
    const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(use.tensor)];
    if (use.role == UseRole::kStreamed) {
      const std::int64_t item_rows = streamed_blocks(edges, tensor) * tensor.layout.block_rows;
      const std::int64_t at_once = ceil_div(pass.span_group * edges.span_rows, item_rows);
      const std::int64_t groups = ceil_div(pass.dst_range_blocks, pass.group_blocks);
      const auto step = static_cast<double>(SpanWindows::step(at_once, groups));
      depth.edges = std::min(depth.edges, 1 + static_cast<double>(slots - at_once) / step);
    } else {
      const double slot_counts = grain.depth(tensor, slots / tensor.layout.slice_count(), in_work);
      depth.rows = std::min(depth.rows, depth_of_all(plan, use.tensor, index, slot_counts));
    }
  }
  if (memory.edges.slots == 0) return depth;
  // A panel's chunks of a window are in use at once.
  const double windows =
      static_cast<double>(memory.edges.slots) / static_cast<double>(pass.span_group);
  depth.edges = std::min(depth.edges, std::max(1.0, windows));
  return depth;
}

}  // namespace ooc
