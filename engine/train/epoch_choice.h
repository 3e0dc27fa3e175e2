// Which of the epochs that a training could have it gets, by what is predicted of them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/model/program.h"
#include "sched/plan/plan.h"

namespace ooc {

// A training program.
struct Candidate {
  ModelProgram training;
  double steps = 1;  // in an epoch

  bool evaluates() const { return training.model().evaluated.loss >= 0; }
};

// The plan of an epoch with one of them.
struct PlannedEpoch {
  Candidate* candidate = nullptr;
  std::int64_t kept_quarters = 0;
  Plan plan;

  // What is to be little: predicted seconds; with `lp` the bytes that move, which it is there
  // for, and seconds where none do.
  double cost() const;
  // That something is transferred: bytes, by what each of them takes.
  double transfer_seconds() const;
};

// What the program computes again may be kept in part: a pass that waits for its workers then
// computes less and reads more. As little of it as costs hardly more than the best share.
// Not with `none` and `lru`, which are there for comparison. Nothing: none fits.
std::optional<PlannedEpoch> plan_share(Candidate& candidate,
                                       const std::vector<const Program*>& programs,
                                       const GraphCounts& counts, PlanOptions options);

// The one that costs the least; of those that cost hardly more, the one that
// transfers the least, if that is a good deal less. Null: there is none.
PlannedEpoch* choose(std::vector<PlannedEpoch>& epochs);

}  // namespace ooc
