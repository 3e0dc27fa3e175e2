#include "sched/plan/residency/lp.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "sched/plan/residency/linear_residency.h"

namespace ooc {
namespace {

// Branch and bound over the slots that are there, the cheapest program first.
class SlotSearch {
 public:
  using Bounds = ResidencyLp::Bounds;

  SlotSearch(ResidencyLp& lp, int most_solved) : lp_(lp), left_(most_solved) { add({}); }

  // Of the next solution in which every slots is whole or not there, or, when enough was solved, of
  // the cheapest one that is known: no solution that was not returned before costs less. Nothing:
  // there is no more.
  struct Found {
    double cost = 0;
    std::optional<ResidencyLp::Branch> branch;  // nothing: it is such a solution
    Bounds bounds;
  };
  std::optional<Found> next() {
    while (!open_.empty()) {
      Found found = open_.top();
      if (left_ <= 0) return found;
      open_.pop();
      if (!found.branch) return found;
      for (const Bounds* more : {&found.branch->without, &found.branch->with}) {
        Bounds bounds = found.bounds;
        bounds.insert(bounds.end(), more->begin(), more->end());
        add(std::move(bounds));
      }
    }
    return std::nullopt;
  }

 private:
  struct Dearer {
    bool operator()(const Found& a, const Found& b) const { return a.cost > b.cost; }
  };

  void add(Bounds bounds) {
    --left_;
    if (!lp_.solve(bounds)) return;
    open_.push({lp_.cost(), lp_.branch(), std::move(bounds)});
  }

  ResidencyLp& lp_;
  int left_;
  std::priority_queue<Found, std::vector<Found>, Dearer> open_;
};

double in_bytes(double mib) { return std::max(0.0, mib * (1 << 20)); }

std::optional<double> cheapest(const PlanProblem& problem, ResidencyLp::Slots all_slot_counts,
                               int most_solved, Zeros zeros = Zeros::kMoved) {
  ResidencyLp lp(problem, all_slot_counts, zeros);
  lp.minimise_bytes();
  const auto found = SlotSearch(lp, most_solved).next();
  if (!found) return std::nullopt;
  return std::floor(in_bytes(found->cost));  // bytes are whole, the solver's costs nearly
}

// Rounds one share after the other, so that those that are left can make up for it. False: that
// came to nothing.
bool round_shares(ResidencyLp& lp, ResidencyLp::Bounds bounds) {
  constexpr int kMostRounded = 200;
  if (!lp.solve(bounds)) return false;
  for (int i = 0; i < kMostRounded; ++i) {
    const auto rounding = lp.rounding();
    if (!rounding) return true;
    bounds.push_back(rounding->nearer);
    if (lp.solve(bounds)) continue;
    bounds.back() = rounding->below;
    if (!lp.solve(bounds)) return false;
  }
  return false;
}

}  // namespace

std::optional<double> least_bytes(const PlanProblem& problem) {
  return cheapest(problem, ResidencyLp::Slots::kLeast, 1000);
}

std::optional<double> likely_bytes(const PlanProblem& problem, Zeros zeros) {
  return cheapest(problem, ResidencyLp::Slots::kPlanned, 12, zeros);
}

double least_seconds(const PlanProblem& problem, const std::vector<double>& compute_seconds,
                     const TransferRates& rates) {
  ResidencyLp lp(problem, ResidencyLp::Slots::kLeast, Zeros::kLeftOut);
  lp.minimise_seconds(compute_seconds, rates);
  return lp.solve({}) ? lp.cost() : 0;
}

ResidentSet choose_by_lp(const PlanProblem& problem) {
  constexpr int kSolutions = 3, kMostSolved = 60;
  constexpr double kGood = 1.002;  // of what fractions come to
  ResidentSet best = problem.empty_residency();
  std::int64_t best_bytes = epoch_bytes(problem, best);
  const auto take = [&](ResidentSet residency) {
    trim(problem, residency);
    fill_memory(problem, residency);
    const std::int64_t bytes = epoch_bytes(problem, residency);
    if (bytes >= best_bytes) return;
    best = std::move(residency);
    best_bytes = bytes;
  };
  ResidencyLp lp(problem, ResidencyLp::Slots::kPlanned);
  lp.minimise_bytes();
  SlotSearch search(lp, kMostSolved);
  for (int i = 0; i < kSolutions; ++i) {
    const auto found = search.next();
    if (!found || kGood * in_bytes(found->cost) >= static_cast<double>(best_bytes)) break;
    if (lp.solve(found->bounds)) take(lp.residency());
    if (round_shares(lp, found->bounds)) take(lp.residency());
    if (found->branch) break;
  }
  return best;
}

}  // namespace ooc
