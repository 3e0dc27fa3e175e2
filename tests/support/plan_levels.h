// What plans are made of, by chance: small problems, and levels of what stays in memory.
#pragma once

#include <random>
#include <vector>

#include "sched/plan/liveness/problem.h"
#include "tests/support/plan_programs.h"

namespace ooc::test {

// By stage: up to three blocks a destination range, and so many slices at once; 0: all.
std::vector<PassSplit> random_splits(const Program& program, std::int64_t most_slices,
                                     std::mt19937& random);

// A program on a small graph within a budget that it may not fit, with the smallest slots.
class SmallProblem {
 public:
  SmallProblem(Program program, std::int64_t most_slices, std::mt19937& random);
  SmallProblem(const SmallProblem&) = delete;
  SmallProblem& operator=(const SmallProblem&) = delete;

  PlanProblem& problem() { return problem_; }

 private:
  Program program_;
  GraphCounts graph_;
  PlanOptions options_;
  PassBuilder builder_;
  EdgeTable edges_;
  std::vector<PassSplit> splits_;
  PlanProblem problem_;
};

// Such as may be: whole I/O chunks, no less during an access than on either side of it. Memory
// isn't looked at.
ResidentSet random_levels(const PlanProblem& problem, std::mt19937& random);

}  // namespace ooc::test
