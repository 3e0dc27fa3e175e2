#include "engine/train/epoch_choice.h"

#include <utility>

#include "sched/plan/search/planner.h"

namespace ooc {
namespace {

// Predictions are no finer than some per cent: what takes hardly more may have other merits.
constexpr double kHardlyMore = 1.03;

}  // namespace

double PlannedEpoch::cost() const {
  const bool fewest = plan.strategy == Strategy::kLp;
  const std::int64_t bytes =
      plan.bytes_read + plan.bytes_written + plan.bytes_to_device + plan.bytes_from_device;
  return candidate->steps * (static_cast<double>(fewest ? bytes : 0) + plan.seconds);
}

double PlannedEpoch::transfer_seconds() const {
  double sum = 0;
  for (const Section& section : plan.sections) {
    for (const Pass& pass : section.passes) sum += pass.transfer_seconds;
  }
  return candidate->steps * sum;
}

std::optional<PlannedEpoch> plan_share(Candidate& candidate,
                                       const std::vector<const Program*>& programs,
                                       const GraphCounts& counts, PlanOptions options) {
  const bool plain = options.strategy == Strategy::kNone || options.strategy == Strategy::kLru ||
                     candidate.training.program().rematerialized.empty();
  std::optional<PlannedEpoch> best;
  for (std::int64_t quarters = 0; quarters < (plain ? 1 : 4); ++quarters) {
    options.kept_quarters = quarters;
    std::optional<Plan> plan = try_plan(programs, counts, options, Bounds::kLeftOut);
    if (!plan) continue;
    PlannedEpoch share{&candidate, quarters, std::move(*plan)};
    if (!best || share.cost() < best->cost()) best = std::move(share);
  }
  return best;
}

PlannedEpoch* choose(std::vector<PlannedEpoch>& epochs) {
  constexpr double kGoodDeal = 0.9;
  const auto least = [&](auto value, auto admits) {
    PlannedEpoch* best = nullptr;
    for (PlannedEpoch& each : epochs) {
      if (!admits(each)) continue;
      if (best == nullptr || (each.*value)() < (best->*value)()) best = &each;
    }
    return best;
  };
  PlannedEpoch* best = least(&PlannedEpoch::cost, [](const PlannedEpoch&) { return true; });
  if (best == nullptr) return nullptr;
  PlannedEpoch* fewest = least(&PlannedEpoch::transfer_seconds, [&](const PlannedEpoch& each) {
    return each.cost() <= kHardlyMore * best->cost();
  });
  return fewest->transfer_seconds() < kGoodDeal * best->transfer_seconds() ? fewest : best;
}

}  // namespace ooc
