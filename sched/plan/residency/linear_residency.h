// What stays in memory as a linear program over the cyclic sequence of accesses: of each tensor the
// share that is there during each access and stays until the next one, all of these in [0, 1].
#pragma once

#include <optional>
#include <vector>

#include "sched/plan/cost/cost.h"
#include "sched/plan/liveness/problem.h"
#include "sched/plan/residency/linear_program.h"

namespace ooc {

class ResidencyLp {
 public:
  using Bounds = std::vector<LinearProgram::Bounds>;

  // What slots and destination ranges take beside a tensor that isn't held as a whole: the least
  // that works, or what the problem gives them.
  enum class Slots { kLeast, kPlanned };

  // The problem must outlive it. kLeftOut: all zeros that are expected, also those of ranges.
  ResidencyLp(const PlanProblem& problem, Slots all_slot_counts, Zeros zeros = Zeros::kMoved);

  // The costs, before solve(): MiB that passes read and write; or seconds, where a pass takes as
  // long as its transfers or its compute, whichever is longer.
  void minimise_bytes();
  void minimise_seconds(const std::vector<double>& compute_seconds, const TransferRates& rates);

  // False: nothing fits within the bounds. The others are of the last solution.
  bool solve(const Bounds& bounds);
  double cost() const { return constant_cost_ + program_.cost(values_); }

  // Slots are all or nothing, and where there are some, something is left to pass through it;
  // solutions have shares of slots. Of the one with most memory missing, the bounds without it and
  // with it.
  struct Branch {
    Bounds without, with;
  };
  std::optional<Branch> branch() const;

  // Of the share that is nearest to a whole number of I/O chunks but none, the bounds that make it
  // one: the nearer one first.
  struct Rounding {
    LinearProgram::Bounds nearer, below;
  };
  std::optional<Rounding> rounding() const;

  // Rounded down to whole I/O chunks.
  ResidentSet residency() const;

 private:
  struct SlotRow {
    int held = 0;      // variable: the share of the tensor that needs none
    int there = 0;     // variable
    double bytes = 0;  // MiB, of a pass
    double most = 0;   // that is held beside it
  };
  struct Share {
    int variable = 0, timeline = 0;
  };

  void add_tensor(int t);
  void add_traffic(const Timeline& line, double bytes, const std::vector<int>& keep,
                   const std::vector<int>& during);
  void add_writes(const Timeline& line, double bytes, const std::vector<int>& keep,
                  std::size_t pass);
  void add_edges(Direction direction);
  void add_alias(const InPlaceAlias& alias);
  void add_pass(int pass);
  void add_use(int pass, const UseDraft& use);
  double average_dst_range(const UseDraft& use, const PassDraft& pass) const;
  void add_edge_slots(int pass);
  int add_share(int timeline);
  // A variable that is 1 where less than all is held.
  int add_slots(int held, double bytes, double most);
  double share_of(const Timeline& line, std::int64_t level) const;
  std::int64_t level_of(const Timeline& line, double share) const;
  double value(int variable) const { return values_[static_cast<std::size_t>(variable)]; }

  const PlanProblem& problem_;
  Slots size_;
  Zeros zeros_;
  LinearProgram program_;
  std::vector<std::vector<int>> keep_, during_;  // variables by timeline
  std::array<int, 2> edges_ = {}, edge_slots_ = {-1, -1};
  std::vector<SlotRow> slot_rows_;
  std::vector<Share> shares_;
  // By pass, in MiB: what is in memory, what moves, and what moves if nothing is kept.
  std::vector<std::vector<LinearProgram::Term>> memory_, read_, written_;
  std::vector<double> used_, constant_;
  double constant_cost_ = 0;
  std::vector<double> values_;
};

}  // namespace ooc
