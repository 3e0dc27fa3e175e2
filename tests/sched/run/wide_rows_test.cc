// Tensors with rows so wide that their blocks are pieces of the graph's: the executor's
// results and bytes, on the CPU and on a device below which host memory keeps some of it.
#include <catch2/catch.hpp>

#include "kernels/device/virtual_device.h"
#include "tests/sched/run/executor_harness.h"
#include "tests/support/cases.h"

namespace ooc::test {
namespace {

constexpr std::int64_t kBlockRows = 4096, kWideCols = 300, kWorkers = 3;

// Three of the graph's blocks, the last one short; two spans.
TinyDataset wide_rows() {
  TinyDataset spec;
  spec.vertices = 2 * kBlockRows + 1500;
  spec.feature_cols = kWideCols;
  spec.block_rows = kBlockRows;
  spec.span_rows = 2 * kBlockRows;
  spec.panel_blocks = 2;
  spec.edges = random_edges(spec.vertices, 30000, 5);
  return spec;
}

// With a last stage that reads b once more, so that it may stay in memory in part.
TwoHops with_late_reader() {
  TwoHops hops(kWideCols);
  hops.sums.push_back(hops.add("late", ValueKind::kReduction, 1));
  hops.program.stages.emplace_back();
  Stage& late = hops.program.stages.back();
  late.name = std::string("late");
  late.steps = {{"dot_sum", {hops.b, hops.b}, {hops.sums.back()}, {}}};
  return hops;
}

const PlannedTensor& tensor_named(const Plan& plan, const std::string& name) {
  return *std::find_if(plan.tensors.begin(), plan.tensors.end(),
                       [&](const PlannedTensor& tensor) { return tensor.name == name; });
}

bool is_cut(const PlannedTensor& tensor) { return tensor.layout.block_rows < kBlockRows; }

// Of the last run: by pass, what the plan says.
void check_passes(const Result& result) {
  std::size_t at = 0;
  for (const Pass& pass : result.plan.sections[0].passes) {
    INFO("pass " << pass.name);
    const RunCounters& counted = result.passes[at++].counters;
    CHECK(counted.bytes_read == pass.bytes_read);
    CHECK(counted.bytes_written == pass.bytes_written);
    CHECK(counted.bytes_to_device == pass.bytes_to_device);
    CHECK(counted.bytes_from_device == pass.bytes_from_device);
  }
}

}  // namespace

TEST_CASE("wide rows: what passes make is cut, what files hold and the host reads is not") {
  Harness harness(wide_rows(), with_late_reader());
  const Plan plan = harness.plan({.strategy = Strategy::kNone, .slices_at_once = 2});
  CHECK(is_cut(tensor_named(plan, "a")));
  CHECK(is_cut(tensor_named(plan, "b")));
  CHECK_FALSE(is_cut(tensor_named(plan, "features")));
  CHECK_FALSE(is_cut(tensor_named(plan, "c")));
  CHECK_FALSE(is_cut(tensor_named(plan, "d")));
  CHECK(plan.sections[0].passes[0].step_rows == tensor_named(plan, "a").layout.block_rows);
  CHECK(plan.sections[0].passes[0].step_rows % plan.sections[0].passes[0].group_rows == 0);
}

TEST_CASE("wide rows: results are the same bits for every strategy, split and budget") {
  Harness harness(wide_rows(), with_late_reader());
  const Result expected = harness.run({.workers = 1});
  const Reference reference(harness.spec());
  check_close(expected.c, reference.c);
  check_close(expected.d, reference.d);
  test::Cases cases(4);
  for (const Strategy strategy : {Strategy::kNone, Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
    for (const std::int64_t dst_range_blocks : {0, 1, 2}) {
      for (const std::int64_t slices : {0, 3}) {
        for (const std::int64_t mib : {0, 34, 40, 46, 52}) {
          INFO("strategy " << static_cast<int>(strategy) << ", parts of " << dst_range_blocks
                           << " blocks, slices " << slices << ", budget " << mib);
          const PlanOptions options{.strategy = strategy,
                                    .memory_bytes = mib << 20,
                                    .workers = kWorkers,
                                    .dst_range_blocks = dst_range_blocks,
                                    .slices_at_once = slices,
                                    .dst_ranges_at_once = 1 + (mib == 46 ? 1 : 0)};
          if (mib > 0 && slices == 0 && dst_range_blocks == 0) continue;  // accumulators don't fit
          if (!cases.next()) continue;
          const Result result = harness.run(options, 3);
          check_same(result, expected);
          check_bytes(result);
          check_passes(result);
        }
      }
    }
  }
}

TEST_CASE("wide rows: a device keeps parts of them, and the host's memory the rest") {
  Harness harness(wide_rows(), with_late_reader());
  const Result expected = harness.run({.workers = 1});
  int partly = 0, in_host = 0;
  test::Cases cases(1);
  for (const Strategy strategy : {Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
    for (std::int64_t mib = 36; mib <= 66; mib += 6) {
      if (!cases.next()) continue;
      INFO("strategy " << static_cast<int>(strategy) << ", device of " << mib << " MiB");
      const PlanOptions options{.strategy = strategy,
                                .memory_bytes = 24 << 20,
                                .device = true,
                                .device_memory_bytes = mib << 20,
                                .workers = kWorkers};
      const Plan plan = harness.plan(options);
      const auto device = make_virtual_cpu_device("cpu:1", options.device_memory_bytes);
      const Result result = harness.open(*device, plan, kWorkers)->run(3);
      check_same(result, expected);
      check_passes(result);
      in_host += plan.host->ranges.empty() ? 0 : 1;
      for (const ResidentRange& range : plan.devices[0].ranges) {
        const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(range.tensor)];
        partly += is_cut(tensor) && range.end_block < tensor.layout.block_count() ? 1 : 0;
      }
    }
  }
  CHECK((partly > 0 || !cases.runs_all()));
  CHECK((in_host > 0 || !cases.runs_all()));
}

}  // namespace ooc::test
