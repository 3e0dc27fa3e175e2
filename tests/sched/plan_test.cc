#include "sched/plan.h"

#include <catch2/catch.hpp>

#include "storage/byte_size.h"
#include "tests/support/plan_checks.h"

using namespace ooc;
using namespace ooc::test;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

GraphCounts small_graph() {
  GraphCounts graph = graph_counts(1 << 20, 16 << 20);
  for (EdgeBytes* side : {&graph.in, &graph.out}) {
    for (std::int64_t chunk = 0; chunk < graph.edges.chunk_count(); ++chunk) {
      side->chunk_bytes.push_back(100000 + chunk * 17 % 5000);
    }
  }
  return graph;
}

}  // namespace

TEST_CASE("plan: without a limit an epoch behind the first moves nothing") {
  const Program program = train_program(3, 100, 64, 40);
  const GraphCounts graph = small_graph();
  for (const Strategy strategy : {Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
    PlanOptions options;
    options.strategy = strategy;
    const Plan plan = make_plan({&program}, graph, options);
    check_plan({&program}, plan, graph, options);
    CHECK(plan.bytes_read == 0);
    CHECK(plan.bytes_written == 0);
    CHECK(plan.stored_bytes == 0);
  }
}

TEST_CASE("plan: every budget is kept, and bytes are those of a walk over the plan") {
  const Program program = train_program(3, 100, 64, 40);
  const GraphCounts graph = small_graph();
  for (const Strategy strategy : {Strategy::kNone, Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
    for (const std::int64_t budget : {96, 128, 200, 256, 400, 512, 1024, 2048}) {
      PlanOptions options;
      options.strategy = strategy;
      options.memory_bytes = budget * kMiB;
      options.workers = 2;
      const Plan plan = make_plan({&program}, graph, options);
      INFO("strategy " << static_cast<int>(strategy) << " budget " << budget);
      check_plan({&program}, plan, graph, options);
    }
  }
}
