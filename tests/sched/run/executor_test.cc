#include "sched/run/executor.h"

#include <catch2/catch.hpp>
#include <chrono>

#include "storage/base/errors.h"
#include "tests/sched/run/executor_harness.h"
#include "tests/support/cases.h"

namespace ooc::test {
namespace {

bool has_windows_apart(const Plan& plan, const TinyDataset& spec) {
  for (const Section& section : plan.sections) {
    for (const Pass& pass : section.passes) {
      if (pass.kind != PassKind::kPropagate) continue;
      if (pass.group_blocks < spec.panel_blocks && pass.span_group > 1) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("executor: without a limit, everything is read once and the result is right") {
  Harness harness;
  const Result result = harness.run({.workers = 2});
  const Reference reference(harness.spec());
  check_close(result.c, reference.c);
  check_close(result.d, reference.d);
  check_bytes(result);
  CHECK(result.runs[0].bytes_read > kVertices * kCols * 4);
  CHECK(result.runs[1].bytes_read == 0);
  CHECK(result.runs[1].bytes_written == 0);
}

TEST_CASE("executor: results are the same bits for every strategy, split and number of workers") {
  Harness harness;
  const Result expected = harness.run({.workers = 1});
  std::int64_t apart = 0;  // runs with groups of blocks whose windows lie apart within a panel
  test::Cases cases(5);
  for (const Strategy strategy : {Strategy::kNone, Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
    for (const std::int64_t dst_range_blocks : {0, 4, 7, 8}) {
      for (const std::int64_t slices : {0, 1}) {
        for (const std::int64_t span_group : {0, 1, 3}) {
          for (const std::int64_t dst_ranges_at_once : {1, 2}) {
            if (!cases.next()) continue;
            INFO("strategy " << static_cast<int>(strategy) << ", parts of " << dst_range_blocks
                             << " blocks, " << dst_ranges_at_once << " at once, slices " << slices
                             << ", span group " << span_group);
            const Result result = harness.run({.strategy = strategy,
                                               .workers = 3,
                                               .dst_range_blocks = dst_range_blocks,
                                               .slices_at_once = slices,
                                               .span_group = span_group,
                                               .dst_ranges_at_once = dst_ranges_at_once});
            check_same(result, expected);
            check_bytes(result);
            if (has_windows_apart(result.plan, harness.spec())) ++apart;
          }
        }
      }
    }
  }
  CHECK((apart > 0 || !cases.runs_all()));
}

TEST_CASE("executor: results are the same bits for every budget, down to the least") {
  Harness harness;
  const Result expected = harness.run({.workers = 1});
  for (const Strategy strategy : {Strategy::kDp, Strategy::kLp}) {
    std::int64_t runs = 0, last_bytes = 0;
    for (std::int64_t budget = 4 << 20; budget > 64 << 10; budget = budget * 3 / 4) {
      PlanOptions options{.strategy = strategy, .memory_bytes = budget, .workers = 2};
      try {
        harness.plan(options);
      } catch (const BudgetError&) {
        break;
      }
      INFO("strategy " << static_cast<int>(strategy) << ", budget " << budget);
      const Result result = harness.run(options, 3);
      check_same(result, expected);
      check_bytes(result);
      last_bytes = result.plan.bytes_read;
      ++runs;
    }
    CHECK(runs >= 4);
    CHECK(last_bytes > 0);
  }
}

TEST_CASE(
    "executor: a failing read or write ends the run with its error, and the next run is right") {
  Harness harness;
  const PlanOptions options{
      .strategy = Strategy::kNone, .workers = 2, .dst_range_blocks = 4, .dst_ranges_at_once = 2};
  const Result expected = harness.run({.workers = 1});
  for (const std::int64_t first : {1, 20, 60}) {
    harness.io().faults = {};
    harness.io().faults.first_failing_read = harness.io().reads + first;
    CHECK_THROWS_AS(harness.run(options), IoError);
    harness.io().faults = {};
    harness.io().faults.first_failing_write = harness.io().writes + first;
    CHECK_THROWS_AS(harness.run(options), IoError);
  }
  harness.io().faults = {};
  check_same(harness.run(options), expected);
}

TEST_CASE("executor: where a row fails to leave behind its pass, the next run is right") {
  Harness harness;
  FaultyBlockIo& io = harness.io();
  const PlanOptions options{.strategy = Strategy::kNone, .workers = 2, .dst_range_blocks = 4};
  const Result expected = harness.run({.workers = 1});
  const auto backend = make_cpu_backend();
  const auto session = harness.open(*backend, harness.plan(options), options.workers);
  const std::int64_t before = io.writes;
  session->run(1);
  const std::int64_t writes = io.writes - before;
  for (std::int64_t write = 1; write <= writes; write += writes / 16) {
    INFO("write " << write << " of " << writes);
    io.faults.write_takes = std::chrono::microseconds(100);
    io.faults.first_failing_write = io.writes + write;
    CHECK_THROWS_AS(session->run(1), IoError);
    io.faults.first_failing_write = 0;
    check_same(session->run(1), expected);
  }
}

// Of 3 columns a file has ten blocks of 8,192 rows in a chunk; eight are a span.
TEST_CASE("executor: units and spans that don't end together come in whole") {
  TinyDataset spec;
  spec.vertices = 400000;
  spec.feature_cols = 3;
  spec.block_rows = 8192;
  spec.span_rows = 65536;
  spec.edges = random_edges(spec.vertices, 100000, 6);
  TwoHops hops(spec.feature_cols);
  hops.program.stages[1].propagation->inputs[0].vertex = hops.x;
  Harness harness(spec, std::move(hops));
  const Result expected = harness.run({.workers = 1}, 1);
  for (const std::int64_t dst_range_blocks : {7, 16}) {
    const PlanOptions options{.strategy = Strategy::kNone,
                              .memory_bytes = 14 << 20,
                              .workers = 2,
                              .dst_range_blocks = dst_range_blocks};
    const Result result = harness.run(options);
    CHECK(result.plan.bytes_read > 0);
    check_same(result, expected);
    check_bytes(result);
  }
}

namespace {

// h = tanh(x), of which a is made, is made again where d is; or read there, in part.
TwoHops repeating(std::int64_t cols) {
  TwoHops hops(cols);
  const auto add = [&](const char* name) { return hops.add(name, ValueKind::kVertex, cols); };
  const ValueId h = add("h"), second = add("h"), half = add("half"), e = add("e"), sum = add("sum");
  hops.program.stages[0].steps = {{"tanh", {hops.x}, {h}, {}},
                                  {"relu", {h}, {hops.a}, {}},
                                  {"dot_sum", {h, hops.a}, {hops.squares}, {}}};
  hops.program.stages[2].steps = {{"tanh", {hops.x}, {second}, {}},
                                  {"relu", {second}, {half}, {}},
                                  {"mul", {hops.d, second}, {e}, {}},
                                  {"add", {e, half}, {sum}, {}},
                                  {"column_sum", {sum}, {hops.sum_d}, {}}};
  hops.program.rematerialized = {{h, second}};
  return hops;
}

}  // namespace

TEST_CASE("executor: rows that are kept are read, the others made again, and bits are the same") {
  Harness harness(small_blocks(), repeating(kCols));
  const Result expected = harness.run({.workers = 1});
  for (const std::int64_t dst_range_blocks : {0, 4, 7}) {
    for (const std::int64_t slices : {0, 1}) {
      for (const std::int64_t quarters : {1, 2, 3}) {
        INFO("parts of " << dst_range_blocks << " blocks, slices " << slices << ", " << quarters
                         << " of 4 rows");
        PlanOptions options{.strategy = Strategy::kNone,
                            .workers = 3,
                            .dst_range_blocks = dst_range_blocks,
                            .slices_at_once = slices};
        const std::int64_t without = harness.plan(options).bytes_written;
        options.kept_quarters = quarters;
        const Result result = harness.run(options);
        check_same(result, expected);
        check_bytes(result);
        // 24 stretches of a block; the last one, the 24th, is the one that is never kept.
        CHECK(result.plan.bytes_written - without == quarters * 6 * 128 * kCols * 4);
        const Pass& last = result.plan.sections[0].passes.back();
        CHECK(last.skipped == std::vector<bool>{true, false, false, false, false});
      }
    }
  }
}

// Blocks of 32,768 rows are two of the tensors', of 16,384; the last one is kept, and isn't whole.
TEST_CASE("executor: what is kept of tensors with blocks of their own is right, too") {
  TinyDataset spec = small_blocks();
  spec.vertices = 140000;
  spec.block_rows = 32768;
  spec.span_rows = 65536;
  spec.edges = random_edges(spec.vertices, 100000, 6);
  Harness harness(spec, repeating(kCols));
  const Result expected = harness.run({.workers = 1}, 1);
  test::Cases cases(1);
  for (const std::int64_t quarters : {1, 3}) {
    for (const Strategy strategy :
         {Strategy::kNone, Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
      if (!cases.next()) continue;
      const Result result = harness.run({.strategy = strategy,
                                         .memory_bytes = 60 << 20,
                                         .workers = 2,
                                         .dst_range_blocks = 2,
                                         .kept_quarters = quarters});
      check_same(result, expected);
      check_bytes(result);
    }
  }
}

// Each pass' last rows are still on their way while the next pass begins, in all of its memory.
TEST_CASE("executor: however long rows are on their way to storage, nothing overtakes them") {
  TwoHops hops(kCols);
  SECTION("as made") {}
  SECTION("kept in part") { hops = repeating(kCols); }
  Harness harness(small_blocks(), hops);
  const Result expected = harness.run({.workers = 1}, 1);
  harness.io().faults.write_takes = std::chrono::microseconds(100);
  test::Cases cases(3);
  for (const Strategy strategy : {Strategy::kNone, Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
    for (const std::int64_t budget : {1 << 20, 640 << 10, 512 << 10}) {
      for (const std::int64_t dst_ranges_at_once : {0, 1, 2}) {
        if (!cases.next()) continue;
        const std::int64_t slices = dst_ranges_at_once > 0 ? 0 : 1;
        INFO("strategy " << static_cast<int>(strategy) << ", budget " << budget << ", slices "
                         << slices << ", " << dst_ranges_at_once << " parts at once");
        const Result result = harness.run({.strategy = strategy,
                                           .memory_bytes = budget,
                                           .workers = 2,
                                           .slices_at_once = slices,
                                           .dst_ranges_at_once = dst_ranges_at_once,
                                           .kept_quarters = 2});
        check_same(result, expected);
        check_bytes(result);
        CHECK(result.plan.bytes_written > 0);
        if (strategy != Strategy::kNone) continue;  // which keeps nothing
        CHECK(result.runs.back().zeros_written > 0);
        CHECK(result.runs.back().zeros_read >= result.runs.back().zeros_written);
      }
    }
  }
}

TEST_CASE("executor: as many zeros are left out as plans expect") {
  TinyDataset spec = small_blocks();
  spec.vertices = 20000;
  spec.block_rows = 2048;
  spec.span_rows = 4096;
  spec.edges = random_edges(spec.vertices, 200000, 8);
  double others = 0;  // that relu leaves
  for (std::int64_t v = 0; v < spec.vertices; ++v) {
    for (std::int64_t col = 0; col < kCols; ++col) others += tiny_feature(spec, v, col) > 0;
  }
  TwoHops hops(kCols);
  for (const ValueId id : {hops.a, hops.d}) {  // d is a's times something
    hops.program.values[static_cast<std::size_t>(id)].density =
        others / static_cast<double>(spec.vertices * kCols);
  }
  Harness harness(spec, hops);
  MachineRates byte_a_second;
  byte_a_second.storage_read = byte_a_second.storage_write = byte_a_second.storage_both = 1;
  for (const Strategy strategy : {Strategy::kNone, Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
    for (const std::int64_t budget : {6 << 20, 4 << 20}) {
      INFO("strategy " << static_cast<int>(strategy) << ", budget " << budget);
      const Result result = harness.run(
          {.strategy = strategy, .memory_bytes = budget, .workers = 2, .rates = byte_a_second});
      double expected = 0;
      for (const Pass& pass : result.plan.sections[0].passes) expected += pass.transfer_seconds;
      const RunCounters& run = result.runs.back();
      const std::int64_t most = run.bytes_read + run.bytes_written;
      const std::int64_t zeros = run.zeros_read + run.zeros_written;
      // Each unit's bytes are rounded up to sectors, half a sector more on the average.
      CHECK(static_cast<double>(most - zeros) == Approx(expected).epsilon(0.015));
      if (strategy == Strategy::kNone) CHECK(zeros > most / 20);
    }
  }
}

// In a first run: later ones would find the same rows there.
TEST_CASE("executor: rows are read only when all of them are in storage") {
  TinyDataset spec = small_blocks();
  spec.vertices = 300;
  spec.edges = random_edges(spec.vertices, 2000, 7);
  Harness harness(spec);
  const Result expected = harness.run({.workers = 1}, 1);
  harness.io().faults.write_takes = std::chrono::microseconds(1000);
  const Result result = harness.run({.strategy = Strategy::kNone, .workers = 2}, 1);
  check_same(result, expected);
  CHECK(result.plan.bytes_written > 0);
}

TEST_CASE("executor: a pass reads while the last rows of the one before leave") {
  TinyDataset spec = small_blocks();
  spec.vertices = 100;  // a block
  spec.edges = random_edges(spec.vertices, 1000, 8);
  Harness harness(spec);
  harness.io().faults.writes_wait_for_read = 2;  // the slices of a
  const Result result = harness.run({.strategy = Strategy::kNone, .workers = 2}, 1);
  CHECK(result.passes[0].counters.bytes_written == spec.vertices * kCols * 4);
  CHECK(!harness.io().waited_in_vain);
}

TEST_CASE("executor: a set stop ends the run at once") {
  Harness harness;
  const std::atomic<bool> stop{true};
  CHECK(harness.run({.strategy = Strategy::kNone}, 1, &stop).runs.empty());
}

TEST_CASE("executor: stopped anywhere, the next run is right") {
  Harness harness;
  const Result expected = harness.run({.workers = 1});
  for (const std::int64_t dst_ranges_at_once : {1, 2}) {
    const PlanOptions options{.strategy = Strategy::kNone,
                              .workers = 2,
                              .dst_range_blocks = 4,
                              .dst_ranges_at_once = dst_ranges_at_once};
    const auto backend = make_cpu_backend();
    const auto session = harness.open(*backend, harness.plan(options), options.workers);
    const std::int64_t before = harness.io().reads;
    check_same(session->run(1), expected);
    const std::int64_t reads = harness.io().reads - before;
    harness.io().faults.write_takes = std::chrono::microseconds(50);
    for (std::int64_t read = 1; read < reads * 3 / 4; read += reads / 11) {
      INFO("read " << read << " of " << reads);
      CHECK(stops(*session, harness.io(), read));
      const Result result = session->run(2);
      check_same(result, expected);
      check_bytes(result);
    }
    harness.io().faults = {};
  }
}

TEST_CASE("executor: no read is larger than a span's slice") {
  Harness harness;
  harness.run({.strategy = Strategy::kNone, .workers = 2, .dst_range_blocks = 8});
  CHECK(harness.io().largest_read <= 256u * 32 * 4 * 4);
}

}  // namespace ooc::test
