// Tensors that take the place of others row by row: which do, and that results stay the same bits.
#include "sched/plan/liveness/in_place.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "sched/plan/report.h"
#include "sched/plan/search/planner.h"
#include "tests/sched/run/executor_harness.h"
#include "tests/support/plan_checks.h"
#include "tests/support/shared_places.h"

namespace ooc::test {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// c = relu(tanh(b)), in two steps: b is read for the last time before c is written.
TwoHops in_two_steps() {
  TwoHops hops;
  const ValueId t = hops.add("t", ValueKind::kVertex, kCols);
  hops.program.stages[1].steps = {{"tanh", {hops.b}, {t}, {}},
                                  {"relu", {t}, {hops.c}, {}},
                                  {"column_sum", {hops.c}, {hops.sum_c}, {}}};
  return hops;
}

int shared_ranges(const Plan& plan) {
  int index = 0, count = 0;
  for (const Pass& pass : plan.sections[0].passes) {
    count += static_cast<int>(in_place_of_others(plan, index++, pass).size());
  }
  return count;
}

std::vector<InPlaceAlias> aliases_of(const Program& program, const GraphCounts& graph,
                                     const PlanOptions& options) {
  const PassBuilder builder({&program}, graph, options);
  const std::vector<PassSplit> splits(program.stages.size(),
                                      {options.dst_range_blocks, options.slices_at_once});
  const Draft draft = builder.draft(splits);
  std::vector<Timeline> timelines = make_timelines(builder, draft, builder.share());
  return find_in_place_aliases(builder, draft, timelines);
}

}  // namespace

TEST_CASE("reuse: results are the same bits where rows are made in the place of others") {
  Harness harness(small_blocks(), in_two_steps());
  const Result expected =
      harness.run({.strategy = Strategy::kNone, .workers = 1, .dst_range_blocks = 4});
  CHECK(shared_ranges(expected.plan) == 0);
  for (const std::int64_t slices : {0, 1}) {
    for (const std::int64_t budget : {0, 1 << 20, 1200 << 10, 1400 << 10, 2 << 20}) {
      INFO("slices " << slices << ", budget " << budget);
      const PlanOptions options{.memory_bytes = budget, .workers = 3, .slices_at_once = slices};
      const Result result = harness.run(options, 3);
      check_same(result, expected);
      check_bytes(result);
      if (budget == 0) CHECK(shared_ranges(result.plan) > 0);
    }
  }
}

TEST_CASE("reuse: a place is taken by rows that are made behind the last step that reads it") {
  const GraphCounts graph = graph_counts(200'000, 3'000'000);
  const TwoHops once;  // its tanh reads b and writes c
  CHECK(aliases_of(once.program, graph, {}).empty());
  TwoHops hops = in_two_steps();
  const PlanOptions sliced{.slices_at_once = 1};
  for (const PlanOptions& options : {PlanOptions{}, sliced}) {
    const std::vector<InPlaceAlias> found = aliases_of(hops.program, graph, options);
    REQUIRE(found.size() == 1);
    CHECK(found[0].pass == (options.slices_at_once > 0 ? 2 : 1));
  }
  CHECK(
      aliases_of(hops.program, graph, {.dst_range_blocks = 1}).empty());  // b is never there whole
  std::vector<RowStep>& steps = hops.program.stages[1].steps;
  const std::vector<RowStep> good = steps;
  steps.push_back({"dot_sum", {hops.b, hops.b}, {hops.squares}, {}});  // reads b again
  CHECK(aliases_of(hops.program, graph, sliced).empty());
  steps = good;
  hops.program.outputs.push_back(hops.b);  // b is wanted later
  CHECK(aliases_of(hops.program, graph, sliced).empty());
  hops.program.outputs.pop_back();
  hops.program.stages[2].steps.push_back({"dot_sum", {hops.b, hops.b}, {hops.squares}, {}});
  CHECK(aliases_of(hops.program, graph, sliced).empty());
}

TEST_CASE("reuse: pieces that follow each other in one place are one bundle") {
  const auto range = [](int tensor, std::int64_t first, std::int64_t end, int from, int to) {
    return ResidentRange{tensor, first, end, {0, (end - first) * 4096}, from, to};
  };
  const std::vector<InPlaceAlias> aliases{{2, 0, 1}, {4, 1, 2}};
  const std::vector<Bundle> bundles =
      make_bundles(aliases, {range(2, 0, 3, 4, 6), range(1, 0, 3, 2, 4), range(0, 0, 3, 1, 2),
                             range(0, 3, 5, 1, 2), range(1, 3, 4, 2, 4), range(3, 0, 3, 2, 4)});
  REQUIRE(bundles.size() == 4);
  std::size_t longest = 0;
  for (const Bundle& bundle : bundles) longest = std::max(longest, bundle.ranges.size());
  CHECK(longest == 3);
  for (const Bundle& bundle : bundles) {
    if (bundle.ranges.size() != longest) continue;
    CHECK(bundle.first_pass() == 1);
    CHECK(bundle.last_pass() == 6);
    CHECK(bundle.bytes() == 3 * 4096);
  }
}

TEST_CASE("reuse: what lies in one place counts once, and leaves memory to others") {
  const Program program = train_program(2, 100, 64, 40);
  const GraphCounts graph = graph_counts(1 << 20, 16 << 20);
  int shared = 0;
  for (const std::int64_t mib : {150, 300, 450, 600, 900}) {
    INFO("budget " << mib);
    const PlanOptions options{.memory_bytes = mib * kMiB, .workers = 2, .slices_at_once = 1};
    const Plan plan = make_plan({&program}, graph, options);
    check_plan({&program}, plan, graph, options);
    shared += shared_ranges(plan);
    const auto json = plan_to_json({&program}, plan);
    for (const auto& pass : json["sections"][0]["passes"]) {
      CHECK(pass["memory_bytes"] <= plan.devices[0].arena_bytes);
    }
  }
  CHECK(shared > 0);
}

}  // namespace ooc::test
