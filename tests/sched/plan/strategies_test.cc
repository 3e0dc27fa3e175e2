// What each strategy is: dp the best of whole tensors, lru a cache, and how far they lie apart.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <random>
#include <utility>

#include "sched/plan/residency/dp.h"
#include "sched/plan/residency/lru.h"
#include "tests/support/plan_levels.h"

using namespace ooc;
using namespace ooc::test;

namespace {

// Every way in which a tensor as a whole may be held during some accesses and kept between some.
std::vector<ResidentPrefix> whole_levels(const Timeline& line, const ResidentPrefix& none) {
  std::vector<ResidentPrefix> all;
  const std::size_t accesses = none.during.size(), intervals = none.keep.size();
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << (accesses + intervals); ++bits) {
    ResidentPrefix levels = none;
    bool fits = true;
    for (std::size_t i = 0; i < accesses; ++i) {
      if ((bits >> i & 1) != 0) levels.during[i] = line.end_block;
      fits = fits && levels.during[i] >= none.during[i];
    }
    for (std::size_t i = 0; i < intervals; ++i) {
      if ((bits >> (accesses + i) & 1) == 0) continue;
      levels.keep[i] = line.end_block;
      for (const int access : {static_cast<int>(i), line.end_of(static_cast<int>(i))}) {
        fits = fits &&
               (access < 0 || levels.during[static_cast<std::size_t>(access)] == line.end_block);
      }
    }
    if (fits) all.push_back(levels);
  }
  return all;
}

// The fewest bytes of all that fits, tensors and edges whole; the largest number: nothing does.
std::int64_t least_of_whole_tensors(const PlanProblem& problem) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  ResidentSet kept = problem.empty_residency();
  const std::function<void(std::size_t)> choose = [&](std::size_t tensor) {
    if (!fits(problem, kept)) return;  // nor with more: no slots is larger than its tensor
    if (tensor == problem.timelines().size()) {
      least = std::min(least, epoch_bytes(problem, kept));
      return;
    }
    const ResidentPrefix none = kept.tensors[tensor];
    for (const ResidentPrefix& levels : whole_levels(problem.timelines()[tensor], none)) {
      kept.tensors[tensor] = levels;
      choose(tensor + 1);
    }
    kept.tensors[tensor] = none;
  };
  const std::int64_t chunks = problem.edges().chunk_count();
  for (int edges = 0; edges < 4; ++edges) {
    kept.edge_chunks = {(edges & 1) != 0 ? chunks : 0, (edges & 2) != 0 ? chunks : 0};
    choose(0);
  }
  return least;
}

}  // namespace

TEST_CASE("strategies: of a short program dp finds the best of whole tensors") {
  std::mt19937 random(3);
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int problems = 0, moving = 0, better_than_lru = 0;
  for (int round = 0; round < 240; ++round) {
    const std::int64_t features = pick(8, 200), classes = pick(2, 60);
    Program program = train_program(1, features, 8, classes);
    // What the host reads after the section is needed to its end.
    if (round % 2 == 1) program.outputs = {program.stages[0].steps[0].outputs[0]};
    SmallProblem small(std::move(program), 0, random);
    PlanProblem& problem = small.problem();
    problem.set_aliases({});  // dp knows of no two tensors in one place
    if (!fits(problem, problem.empty_residency())) continue;
    std::string remark;
    const ResidentSet kept = choose_by_dp(problem, remark);
    INFO("round " << round << " tensors " << problem.timelines().size());
    CHECK(remark.empty());
    REQUIRE(fits(problem, kept));
    const std::int64_t bytes = epoch_bytes(problem, kept);
    if (bytes > 0) CHECK(bytes == least_of_whole_tensors(problem));
    ResidentSet lru = choose_by_lru(problem);
    trim(problem, lru);
    ++problems;
    moving += bytes > 0 ? 1 : 0;
    better_than_lru += bytes < epoch_bytes(problem, lru) ? 1 : 0;
  }
  CHECK(problems >= 120);
  CHECK(moving >= 40);
  CHECK(better_than_lru >= 30);
}
