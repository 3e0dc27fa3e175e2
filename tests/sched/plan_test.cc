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

TEST_CASE("plan: tmp table") {
  const Program program = train_program(3, 100, 64, 40);
  const GraphCounts graph = small_graph();
  for (const std::int64_t budget : {96, 128, 200, 256, 400, 512, 1024, 1400,1600,1800, 2048}) {
    for (const Strategy strategy :
         {Strategy::kNone, Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
      PlanOptions options;
      options.strategy = strategy;
      options.memory_bytes = budget * kMiB;
      options.workers = 2;
      const Plan plan = make_plan({&program}, graph, options);
      printf("%5ld MiB strategy %d: %8.1f MiB, bound %8.1f arena %.1f scratch %.1f red %.1f\n", budget, (int)strategy,
             double(plan.bytes_read + plan.bytes_written) / kMiB, double(plan.bound_bytes) / kMiB, double(plan.arena_bytes)/kMiB, 2*double(plan.scratch_bytes)/kMiB,double(plan.reduction_bytes)/kMiB);
    }
  }
}

TEST_CASE("plan: tmp mono") {
  const Program program = train_program(3, 100, 64, 40);
  const GraphCounts graph = small_graph();
  for (const Strategy strategy : {Strategy::kNone, Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
    std::int64_t last = 1L << 60;
    for (std::int64_t budget = 64; budget < 1700; budget += 16) {
      PlanOptions options;
      options.strategy = strategy;
      options.memory_bytes = budget * kMiB;
      options.workers = 2;
      try {
      const Plan plan = make_plan({&program}, graph, options);
      const auto bytes = plan.bytes_read + plan.bytes_written;
      if (bytes > last*1.001 || (strategy == Strategy::kLp && bytes > 1.05 * plan.bound_bytes))
      printf("%5ld MiB strategy %d: %8.1f MiB after %.1f, bound %8.1f\n", budget, (int)strategy,
             double(bytes) / kMiB, double(last)/kMiB, double(plan.bound_bytes) / kMiB);
      last = bytes;
      } catch (std::exception& e) { printf("%ld: %s\n", budget, e.what()); }
    }
  }
}
