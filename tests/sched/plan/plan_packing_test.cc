// What predictions say of rows that zeros are left out of.
#include <catch2/catch.hpp>

#include "sched/plan/cost/cost.h"
#include "tests/support/plan_programs.h"

using namespace ooc;
using namespace ooc::test;

TEST_CASE("cost: rows are packed and unpacked beside what else their phase computes") {
  const Program program = sparse_program();
  const GraphCounts graph = graph_counts(1 << 20, 16 << 20);
  PlanOptions options;
  options.memory_bytes = 400 << 20;
  options.rates.packing = 10;
  const PassBuilder builder({&program}, graph, options);
  const EdgeTable edges(graph);
  const PlanProblem problem(builder, edges, std::vector<PassSplit>(program.stages.size(), {16, 1}));
  int apart = 0;
  for (const PassDraft& pass : problem.draft().passes) {
    const PhaseSeconds without = compute_seconds(builder, pass, 1);
    const PhaseSeconds with = compute_seconds(builder, pass, 1, {100, 200, 400, 800});
    const bool leaves = pass.edges && !pass.rows;
    CHECK(with.resident == 0);
    CHECK(with.edges - without.edges == Approx(leaves ? 110 : 30));
    CHECK(with.rows - without.rows == Approx(leaves ? 40 : 120));
    apart += leaves ? 1 : 0;
  }
  CHECK(apart > 0);
}
