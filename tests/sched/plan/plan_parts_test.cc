// How passes are split where a plan may move more bytes for less time.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sched/plan/cost/cost.h"
#include "sched/plan/residency/tier.h"
#include "sched/plan/search/choice.h"
#include "sched/plan/search/planner.h"
#include "tests/support/device_memory.h"
#include "tests/support/plan_checks.h"

using namespace ooc;
using namespace ooc::test;

namespace {

PlanOptions with_budget(std::int64_t mib) {
  PlanOptions options;
  options.strategy = Strategy::kDp;
  options.memory_bytes = mib << 20;
  options.workers = 2;
  return options;
}

void leave_zeros_in_gathered(Program& program, double density) {
  for (Value& value : program.values) {
    const bool gathered = value.name[0] == 'z' || value.name.rfind("dh", 0) == 0;
    if (gathered) value.density = density;
  }
}

std::int64_t moved(const Plan& plan) { return plan.bytes_read + plan.bytes_written; }

}  // namespace

TEST_CASE("plan: predictions follow the windows that there are") {
  const Program program = train_program(3, 128, 128, 16);
  const GraphCounts graph = graph_counts(4'000'000, 120'000'000);
  PlanOptions options = with_budget(0);
  const auto seconds = [&](std::int64_t spans) {
    options.span_group = spans;
    const Plan plan = make_plan({&program}, graph, options);
    double sum = 0;
    for (const Pass& pass : plan.sections[0].passes) {
      if (pass.kind == PassKind::kPropagate) sum += pass.compute_seconds;
    }
    return sum;
  };
  CHECK(seconds(4) < 0.9 * seconds(1));
}

TEST_CASE("plan: three parts of all slices rather than sums that leave slice by slice") {
  Program program = train_program(3, 128, 128, 16);
  leave_zeros_in_gathered(program, 0.35);
  const GraphCounts graph = graph_counts(4'000'000, 120'000'000);
  PlanOptions options = with_budget(978);
  options.rates.storage_read = 3.7e9;
  options.rates.storage_write = 4.5e9;
  options.rates.storage_both = 4.1e9;
  options.rates.gather = 6e10;
  const Plan plan = make_plan({&program}, graph, options);
  check_plan({&program}, plan, graph, options);
  int whole = 0;
  for (const Pass& pass : plan.sections[0].passes) {
    if (pass.slice_local_cols == 128 && pass.slices_at_once == 4 && pass.span_group == 4) ++whole;
  }
  CHECK(whole > 0);
  options.slices_at_once = 1;
  CHECK(plan.seconds < make_plan({&program}, graph, options).seconds);
}

TEST_CASE("plan: smaller parts where their rings would be shallow") {
  const Program program = train_program(3, 128, 128, 16);
  const GraphCounts graph = graph_counts(4'000'000, 120'000'000);
  std::int64_t deeper = 0;
  for (std::int64_t budget = 160; budget <= 400; budget += 24) {
    INFO("budget " << budget);
    PlanOptions options = with_budget(budget);
    const Plan plan = make_plan({&program}, graph, options);
    check_plan({&program}, plan, graph, options);
    options.dst_ranges_at_once = 1;  // the destination ranges that move the fewest bytes
    const Plan fewest = make_plan({&program}, graph, options);
    CHECK(plan.seconds <= fewest.seconds);
    CHECK(static_cast<double>(moved(plan)) <= 1.15 * static_cast<double>(moved(fewest)));
    const std::vector<Pass>& passes = plan.sections[0].passes;
    for (std::size_t i = 0; i < passes.size() && i < fewest.sections[0].passes.size(); ++i) {
      if (passes[i].dst_ranges_at_once > 1 || passes[i].kind != PassKind::kPropagate) continue;
      if (passes[i].dst_ranges > fewest.sections[0].passes[i].dst_ranges) ++deeper;
    }
  }
  CHECK(deeper > 0);
}

TEST_CASE("plan: rings as wide as a split asks for, whatever then stays less") {
  const Program program = train_program(3, 128, 128, 16);
  const GraphCounts graph = graph_counts(4'000'000, 120'000'000);
  const PlanOptions options = with_budget(256);
  const PassBuilder builder({&program}, graph, options);
  const EdgeTable edges(graph);
  std::vector<PassSplit> splits(program.stages.size(), {49, 1});
  const PlanProblem as_left(builder, edges, splits);
  for (PassSplit& split : splits) split.slot_spans = 6;
  PlanProblem wide(builder, edges, splits);
  for (PassSplit& split : splits) split.slot_spans = 600;
  const PlanProblem too_wide(builder, edges, splits);
  REQUIRE(fits(wide, wide.empty_residency()));
  const Plan plan = plan_tier(wide).plan;
  int widened = 0, index = 0;
  for (const Pass& pass : plan.sections[0].passes) {
    INFO("pass " << index);
    CHECK(too_wide.slot_counts(index) == as_left.slot_counts(index));
    if (wide.draft().passes[static_cast<std::size_t>(index)].edges) {
      CHECK(wide.slot_counts(index).spans == 6);
      for (const TensorUse& use : pass.uses) {
        if (use.role == UseRole::kStreamed && memory_of(plan, pass, use).slots > 0)
          CHECK(memory_of(plan, pass, use).slots >= 6);
      }
      widened += as_left.slot_counts(index).spans < 6 ? 1 : 0;
    }
    ++index;
  }
  CHECK(widened > 0);
}

TEST_CASE("plan: sums have windows of four spans though less then stays") {
  const Program program = train_program(3, 128, 128, 16);
  const GraphCounts graph = graph_counts(4'000'000, 120'000'000);
  PlanOptions options = with_budget(256);
  const Plan plan = make_plan({&program}, graph, options);
  check_plan({&program}, plan, graph, options);
  for (const Pass& pass : plan.sections[0].passes) {
    if (pass.kind == PassKind::kPropagate) CHECK(pass.span_group >= 4);
  }
  const SlotDepth depth = slot_depth(plan, graph.edges, 2, 1, plan.sections[0].passes[1]);
  CHECK(plan.sections[0].passes[1].kind == PassKind::kPropagate);
  CHECK(depth.window < 0.2);
  options.dst_ranges_at_once = 1;  // slots as memory is left for them
  const Plan narrow = make_plan({&program}, graph, options);
  const std::vector<Pass>& passes = narrow.sections[0].passes;
  CHECK(std::any_of(passes.begin(), passes.end(), [](const Pass& pass) {
    return pass.kind == PassKind::kPropagate && pass.span_group < 4;
  }));
  CHECK(plan.seconds < 0.97 * narrow.seconds);
}

TEST_CASE("plan: edges take less with more spans at once, to two edges a row") {
  const Program program = sparse_program();
  const GraphCounts graph = graph_counts(1 << 20, 8 << 20);
  const PlanOptions options;
  const PassBuilder builder({&program}, graph, options);
  const EdgeTable edges(graph);
  const PlanProblem problem(builder, edges, std::vector<PassSplit>(program.stages.size()));
  int propagations = 0;
  for (const PassDraft& pass : problem.draft().passes) {
    const auto at_once = [&](std::int64_t spans) { return compute_seconds(builder, pass, spans); };
    CHECK(at_once(4).rows == at_once(1).rows);
    if (!pass.edges) continue;
    CHECK(at_once(2).edges < 0.96 * at_once(1).edges);
    CHECK(at_once(4).edges < 0.96 * at_once(2).edges);
    CHECK(at_once(8).edges == at_once(4).edges);
    ++propagations;
  }
  CHECK(propagations > 0);
}

TEST_CASE("plan: smaller parts where the compute of their bytes is worth it") {
  Program program = train_program(3, 128, 128, 16);
  leave_zeros_in_gathered(program, 0.4);
  const GraphCounts graph = graph_counts(4'000'000, 120'000'000);
  PlanOptions options = with_budget(328);
  const Plan plan = make_plan({&program}, graph, options);
  options.rates.packing /= 20;
  const Plan slow = make_plan({&program}, graph, options);
  options.dst_ranges_at_once = 1;  // the destination ranges that move the fewest bytes
  const Plan fewest = make_plan({&program}, graph, options);
  CHECK(static_cast<double>(moved(plan)) > 1.05 * static_cast<double>(moved(fewest)));
  CHECK(static_cast<double>(moved(slow)) < 1.01 * static_cast<double>(moved(fewest)));
  CHECK(slow.seconds < fewest.seconds);  // by slots alone
}

TEST_CASE("plan: a slow disk reads rows with zeros once more rather than dense sums") {
  Program program = train_program(3, 128, 128, 16);
  const GraphCounts graph = graph_counts(4'000'000, 120'000'000);
  PlanOptions options = with_budget(896);
  options.rates.storage_read = options.rates.storage_write = 5e8;
  options.rates.storage_both = 1e9;
  const auto sliced = [](const Plan& plan) {
    const std::vector<Pass>& passes = plan.sections[0].passes;
    return std::count_if(passes.begin(), passes.end(), [](const Pass& pass) {
      return pass.kind == PassKind::kPropagate && pass.steps.empty();
    });
  };
  CHECK(sliced(make_plan({&program}, graph, options)) > 0);
  leave_zeros_in_gathered(program, 0.3);
  const Plan plan = make_plan({&program}, graph, options);
  check_plan({&program}, plan, graph, options);
  CHECK(sliced(plan) == 0);
  options.slices_at_once = 1;
  CHECK(plan.seconds < 0.97 * make_plan({&program}, graph, options).seconds);
}

TEST_CASE("plan: two parts at once where the disk waits for edges, then compute for the disk") {
  const Program program = train_program(2, 128, 128, 16);
  const GraphCounts graph = graph_counts(4'000'000, 120'000'000);
  PlanOptions options = with_budget(896);
  options.rates.gather = 2e10;
  const Plan plan = make_plan({&program}, graph, options);
  check_plan({&program}, plan, graph, options);
  std::int64_t pipelined = 0;
  for (const Pass& pass : plan.sections[0].passes) {
    if (pass.dst_ranges_at_once > 1) ++pipelined;
    // They lie beside each other.
    for (const TensorUse& use : pass.uses) {
      const bool dst_range = use.role == UseRole::kAccumulator || use.role == UseRole::kResident;
      if (dst_range)
        CHECK(memory_of(plan, pass, use).bytes % (4096 * pass.dst_ranges_at_once) == 0);
    }
  }
  CHECK(pipelined > 0);
  options.dst_ranges_at_once = 1;
  const Plan apart = make_plan({&program}, graph, options);
  for (const Pass& pass : apart.sections[0].passes) CHECK(pass.dst_ranges_at_once == 1);
  CHECK(plan.seconds < apart.seconds);
  CHECK(static_cast<double>(moved(plan)) <= 1.15 * static_cast<double>(moved(apart)));
}
