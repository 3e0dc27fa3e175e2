// The bound: no plan for the same passes goes below it, and `lp` comes close to it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <utility>

#include "sched/plan/residency/lp.h"
#include "sched/plan/search/planner.h"
#include "tests/support/plan_checks.h"
#include "tests/support/plan_levels.h"

using namespace ooc;
using namespace ooc::test;

namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr Strategy kStrategies[] = {Strategy::kNone, Strategy::kLru, Strategy::kDp, Strategy::kLp};

std::int64_t moved(const Plan& plan) { return plan.bytes_read + plan.bytes_written; }

}  // namespace

TEST_CASE("bound: nothing that fits into memory moves less") {
  std::mt19937 random(11);
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int close = 0, near = 0, problems = 0;
  double chosen_bytes = 0, least_found = 0;
  for (int round = 0; round < 40; ++round) {
    const auto layers = static_cast<int>(pick(1, 2));
    const std::int64_t features = pick(8, 200), hidden = pick(8, 100), classes = pick(2, 60);
    SmallProblem small(train_program(layers, features, hidden, classes), 2, random);
    const PlanProblem& problem = small.problem();
    const auto bound = least_bytes(problem);
    std::int64_t least = -1;
    for (int i = 0; i < 400; ++i) {
      ResidentSet kept = random_levels(problem, random);
      if (i % 8 == 0) trim(problem, kept);
      if (!fits(problem, kept)) continue;
      if (i % 4 == 0) fill_memory(problem, kept);
      const std::int64_t bytes = epoch_bytes(problem, kept);
      if (least < 0 || bytes < least) least = bytes;
    }
    INFO("round " << round << " least " << least << " bound " << bound.value_or(-1));
    if (least < 0) continue;
    ++problems;
    REQUIRE(bound.has_value());
    CHECK(*bound <= static_cast<double>(least));
    const ResidentSet chosen = choose_by_lp(problem);
    REQUIRE(fits(problem, chosen));
    CHECK(*bound <= static_cast<double>(epoch_bytes(problem, chosen)));
    near += epoch_bytes(problem, chosen) <= least * 105 / 100 ? 1 : 0;
    chosen_bytes += static_cast<double>(epoch_bytes(problem, chosen));
    least_found += static_cast<double>(least);
    close += static_cast<double>(epoch_bytes(problem, chosen)) <= 1.05 * *bound + 1 ? 1 : 0;
  }
  CHECK(problems >= 30);
  CHECK(close >= problems * 2 / 3);
  // Whole I/O chunks cost what they cost: now and then levels by chance move a little less.
  CHECK(near >= problems * 9 / 10);
  CHECK(chosen_bytes <= 1.02 * least_found);
}

TEST_CASE("bound: it is the same for every strategy that has the same passes, and below all") {
  const Program program = train_program(2, 100, 64, 40);
  const GraphCounts graph = graph_counts(1 << 20, 16 << 20);
  for (const std::int64_t slices : {1, 2}) {
    for (const std::int64_t mib : {150, 300, 500, 800}) {
      INFO("slices " << slices << " budget " << mib);
      std::int64_t bound = -1, least = -1;
      for (const Strategy strategy : kStrategies) {
        PlanOptions options{.strategy = strategy, .memory_bytes = mib * kMiB};
        options.dst_range_blocks = 4;
        options.slices_at_once = slices;
        const Plan plan = make_plan({&program}, graph, options);
        if (bound < 0) bound = plan.bound_bytes;
        CHECK(plan.bound_bytes == bound);
        if (least < 0 || moved(plan) < least) least = moved(plan);
      }
      CHECK(bound <= least);
    }
  }
}

// Reddit's shape: two layers, 602 features whose first aggregation is an input. With a little more
// memory hardly anything moves, and I/O chunks and places cost more than that.
TEST_CASE("bound: lp is within 5 % of it on a device that holds most of what an epoch needs") {
  const Program program = hoisted_program(602, 128, 41);
  GraphCounts graph = graph_counts(232'965, 114'600'000);
  graph.symmetric = true;
  graph.produced_inputs = {"P"};
  std::int64_t last = std::numeric_limits<std::int64_t>::max();  // moved, with less memory
  for (const std::int64_t mib : {512, 640, 768, 832, 864, 888}) {
    INFO("device " << mib);
    PlanOptions options;
    options.device = true;
    options.device_memory_bytes = mib * kMiB;
    options.workers = 2;
    const Plan plan = make_plan({&program}, graph, options);
    check_plan({&program}, plan, graph, options);
    const std::int64_t moved = plan.bytes_to_device + plan.bytes_from_device;
    CHECK(static_cast<double>(moved) <= 1.05 * static_cast<double>(plan.bound_link_bytes));
    CHECK(moved < std::exchange(last, moved));
  }
}
