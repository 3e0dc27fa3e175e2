// Plans for a device with memory of its own: the device's arena, the host's below it, then storage.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>

#include "sched/plan/plan.h"
#include "sched/plan/report.h"
#include "sched/plan/search/planner.h"
#include "storage/base/errors.h"
#include "tests/support/cases.h"
#include "tests/support/plan_checks.h"

using namespace ooc;
using namespace ooc::test;

namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr Strategy kStrategies[] = {Strategy::kNone, Strategy::kLru, Strategy::kDp, Strategy::kLp};

// Edge chunks of many sizes.
GraphCounts small_graph(std::int64_t vertices = 1 << 20, std::int64_t block_rows = 16384) {
  GraphCounts graph = graph_counts(vertices, 16 * vertices, block_rows);
  for (EdgeBytes* side : {&graph.in, &graph.out}) {
    std::int64_t chunk = 0;
    for (std::int64_t& bytes : side->chunk_bytes) bytes += (chunk++ * 7919) % 5000;
  }
  return graph;
}

// 0: no limit.
PlanOptions with_budgets(std::int64_t device_mib, std::int64_t host_mib,
                         Strategy strategy = Strategy::kLp) {
  PlanOptions options;
  options.strategy = strategy;
  options.device = true;
  options.device_memory_bytes = device_mib * kMiB;
  options.memory_bytes = host_mib * kMiB;
  options.workers = 2;
  return options;
}

std::int64_t storage_bytes(const Plan& plan) { return plan.bytes_read + plan.bytes_written; }
std::int64_t link_bytes(const Plan& plan) { return plan.bytes_to_device + plan.bytes_from_device; }

std::string message_of(const std::vector<const Program*>& programs, const GraphCounts& graph,
                       const PlanOptions& options) {
  try {
    make_plan(programs, graph, options);
  } catch (const BudgetError& error) {
    return error.what();
  }
  return "";
}

std::int64_t number_after(const std::string& message, const std::string& text) {
  INFO(message);
  const std::size_t at = message.find(text);
  REQUIRE(at != std::string::npos);
  return std::stoll(message.substr(at + text.size()));
}

}  // namespace

TEST_CASE("plan: a device that holds everything needs the host for the first epoch alone") {
  const Program program = train_program(3, 100, 64, 40);
  const GraphCounts graph = small_graph();
  for (const Strategy strategy : {Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
    const PlanOptions options = with_budgets(0, 64, strategy);
    const Plan plan = make_plan({&program}, graph, options);
    check_plan({&program}, plan, graph, options);
    CHECK(storage_bytes(plan) == 0);
    CHECK(link_bytes(plan) == 0);
    REQUIRE(plan.host.has_value());
    CHECK(plan.host->ranges.empty());
    CHECK(plan.host->edge_ranges.empty());
    CHECK(plan.host->arena_bytes == plan.host->staging.bytes);
  }
}

TEST_CASE("plan: a large host memory keeps storage idle behind the first epoch") {
  const Program program = train_program(3, 100, 64, 40);
  const GraphCounts graph = small_graph();
  Cases cases(3);
  for (const Strategy strategy : {Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
    for (const std::int64_t device : {80, 300, 700}) {
      if (!cases.next()) continue;
      INFO("strategy " << static_cast<int>(strategy) << " device " << device);
      const PlanOptions unlimited = with_budgets(device, 0, strategy);
      const Plan roomy = make_plan({&program}, graph, unlimited);
      check_plan({&program}, roomy, graph, unlimited);
      CHECK(storage_bytes(roomy) == 0);
      CHECK(roomy.stored_bytes == 0);
      CHECK(link_bytes(roomy) > 0);
      CHECK(roomy.host->staging_slots == 16);
      const PlanOptions enough =
          with_budgets(device, roomy.host->arena_bytes / kMiB + 64, strategy);
      const Plan plan = make_plan({&program}, graph, enough);
      check_plan({&program}, plan, graph, enough);
      CHECK(storage_bytes(plan) == 0);
    }
  }
}

TEST_CASE("plan: what the device keeps is what it would keep above storage") {
  const Program program = train_program(3, 100, 64, 40);
  const GraphCounts graph = small_graph();
  Cases cases(3);
  for (const Strategy strategy : kStrategies) {
    for (const std::int64_t device : {64, 200, 528, 1024}) {
      if (!cases.next()) continue;
      INFO("strategy " << static_cast<int>(strategy) << " device " << device);
      PlanOptions options = with_budgets(device, 150, strategy);
      options.dst_ranges_at_once =
          1;  // both have the destination ranges that move the fewest bytes
      options.rates.storage_read = options.rates.to_device;
      options.rates.storage_write = options.rates.from_device;
      options.rates.storage_both = options.rates.to_device + options.rates.from_device;
      Plan plan = make_plan({&program}, graph, options);
      options.device = false;
      options.memory_bytes = options.device_memory_bytes;
      // A device's plan has more memory for partial sums.
      const Plan first = make_plan({&program}, graph, options);
      options.memory_bytes -= plan.devices[0].reduction_bytes - first.devices[0].reduction_bytes;
      const Plan apart = make_plan({&program}, graph, options);
      CHECK(plan.bytes_to_device == apart.bytes_read);
      CHECK(plan.bytes_from_device == apart.bytes_written);
      CHECK(plan.bound_link_bytes == apart.bound_bytes);
      CHECK(plan.devices[0].arena_bytes == apart.devices[0].arena_bytes);
      REQUIRE(plan.devices[0].ranges.size() == apart.devices[0].ranges.size());
      for (std::size_t i = 0; i < plan.devices[0].ranges.size(); ++i) {
        CHECK(plan.devices[0].ranges[i].tensor == apart.devices[0].ranges[i].tensor);
        CHECK(plan.devices[0].ranges[i].end_block == apart.devices[0].ranges[i].end_block);
        CHECK(plan.devices[0].ranges[i].memory.offset == apart.devices[0].ranges[i].memory.offset);
        CHECK(plan.devices[0].ranges[i].first_pass == apart.devices[0].ranges[i].first_pass);
        CHECK(plan.devices[0].ranges[i].last_pass == apart.devices[0].ranges[i].last_pass);
      }
    }
  }
}

TEST_CASE("plan: both budgets are kept, and bytes are those of a walk over both tiers") {
  const Program program = train_program(3, 100, 64, 40);
  const GraphCounts graph = small_graph();
  Cases cases(5);
  for (const Strategy strategy : kStrategies) {
    for (const std::int64_t device : {64, 128, 400, 800}) {
      for (const std::int64_t host : {3, 40, 200, 600, 1024}) {
        if (!cases.next()) continue;
        INFO("strategy " << static_cast<int>(strategy) << " device " << device << " host " << host);
        const PlanOptions options = with_budgets(device, host, strategy);
        check_plan({&program}, make_plan({&program}, graph, options), graph, options);
      }
    }
  }
}

TEST_CASE("plan: random programs and budgets keep the rules of both tiers") {
  std::mt19937 random(7);
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  Cases cases(4);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t features = pick(8, 300);
    const Program first =
        train_program(static_cast<int>(pick(1, 3)), features, pick(8, 160), pick(2, 60));
    Program second = train_program(2, features, 64, 7);
    second.outputs = {second.stages[1].propagation->folds[0].accumulators[0],
                      second.stages[2].steps[0].outputs[0]};
    const std::vector<const Program*> programs{&first, &second};
    GraphCounts graph = small_graph(pick(100'000, 900'000), pick(0, 1) == 0 ? 1024 : 16384);
    graph.symmetric = pick(0, 3) == 0;
    if (pick(0, 1) == 0) graph.produced_inputs = {"features"};
    PlanOptions options = with_budgets(pick(100, 900), pick(8, 900), kStrategies[pick(0, 3)]);
    options.store_outputs = pick(0, 2) == 0;
    if (!cases.next()) continue;
    INFO("round " << round << " device " << options.device_memory_bytes / kMiB << " host "
                  << options.memory_bytes / kMiB << " strategy "
                  << static_cast<int>(options.strategy));
    check_plan(programs, make_plan(programs, graph, options), graph, options);
  }
}

TEST_CASE("plan: more host memory moves fewer bytes to storage, and the strategies are in order") {
  const Program program = train_program(3, 100, 64, 40);
  const GraphCounts graph = small_graph();
  // Each strategy leaves the host what its own device plan moves, so `lp` may be a little behind.
  Cases cases(3);
  for (const std::int64_t device : {104, 400}) {
    std::int64_t before = std::int64_t{1} << 60;
    for (const std::int64_t host : {8, 64, 160, 400, 800, 1600}) {
      if (!cases.next()) continue;
      INFO("device " << device << " host " << host);
      std::vector<std::int64_t> bytes;
      for (const Strategy strategy : kStrategies) {
        bytes.push_back(
            storage_bytes(make_plan({&program}, graph, with_budgets(device, host, strategy))));
      }
      CHECK(bytes[3] <= before);
      for (const std::int64_t other : bytes) CHECK(bytes[3] <= other * 105 / 100);
      before = bytes[3];
    }
  }
}

// The walk of a two-layer GCN whose first aggregation is an input: 50 M vertices and 1.5 G edges.
TEST_CASE("plan: a 16 GB device above 64 GiB of host memory leaves the disk idle") {
  const Program program = hoisted_program(128, 128, 64);
  GraphCounts graph = graph_counts(50'000'000, 1'500'000'000);
  graph.produced_inputs = {"P"};
  const PlanOptions options = with_budgets(16'000'000'000 / kMiB, 65536);
  const Plan plan = make_plan({&program}, graph, options);
  check_plan({&program}, plan, graph, options);
  CHECK(storage_bytes(plan) == 0);
  CHECK(plan.stored_bytes == 0);
  CHECK(static_cast<double>(link_bytes(plan)) <= 1.05 * static_cast<double>(plan.bound_link_bytes));
}

TEST_CASE("plan: reports of a device tell its tiers apart") {
  const Program program = train_program(2, 100, 64, 40);
  const GraphCounts graph = small_graph();
  const Plan plan = make_plan({&program}, graph, with_budgets(200, 300));
  const auto json = plan_to_json({&program}, plan);
  CHECK(json["host"]["arena_bytes"] == plan.host->arena_bytes);
  CHECK(json["bytes_to_device"] == plan.bytes_to_device);
  CHECK(json["bound_link_bytes"] == plan.bound_link_bytes);
  std::int64_t bytes = 0, ranges = 0, peak = 0;
  for (const auto& pass : json["sections"][0]["passes"]) {
    bytes += pass["bytes_from_device"].get<std::int64_t>();
    peak = std::max(peak, pass["host_memory_bytes"].get<std::int64_t>());
  }
  for (const auto& tensor : json["tensors"]) {
    ranges += static_cast<std::int64_t>(tensor["in_host_memory"].size());
  }
  CHECK(bytes == plan.bytes_from_device);
  CHECK(peak <= plan.host->arena_bytes);
  CHECK(peak > plan.host->staging.bytes);
  CHECK(ranges == static_cast<std::int64_t>(plan.host->ranges.size()));
  const std::string text = plan_to_text({&program}, plan);
  for (const char* dst_range :
       {"what stays in the device's memory", "what stays in the host's memory", "from device",
        "over the link"}) {
    CHECK(text.find(dst_range) != std::string::npos);
  }
  PlanOptions apart = with_budgets(0, 300);
  apart.device = false;
  const Plan without = make_plan({&program}, graph, apart);
  CHECK_FALSE(plan_to_json({&program}, without).contains("host"));
  CHECK(plan_to_text({&program}, without).find("device") == std::string::npos);
}

TEST_CASE("plan: a pass over the link takes as long as the slowest of storage, link and compute") {
  const Program program = train_program(2, 100, 64, 40);
  const GraphCounts graph = small_graph();
  PlanOptions options = with_budgets(100, 100);
  options.rates.to_device = 1e8;  // slower than storage, by far
  const Plan plan = make_plan({&program}, graph, options);
  check_plan({&program}, plan, graph, options);
  double seconds = 0;
  for (const Pass& pass : plan.sections[0].passes) {
    CHECK(pass.seconds >= static_cast<double>(pass.bytes_to_device) / 1e8);
    seconds += static_cast<double>(pass.bytes_to_device) / 1e8;
  }
  CHECK(plan.seconds == Approx(seconds).epsilon(0.05));
  CHECK(plan.bound_seconds >= 0.9 * static_cast<double>(plan.bound_link_bytes) / 1e8 -
                                  static_cast<double>(plan.bytes_from_device) / 1e8);
}

TEST_CASE("plan: a device budget that is too small names two that work") {
  const Program program = train_program(2, 256, 64, 40);
  const GraphCounts graph = small_graph();
  PlanOptions options = with_budgets(16, 100);
  options.device_reserved_bytes = 5 * kMiB;
  options.rates.to_device = options.rates.storage_read = options.rates.storage_write = 2e8;
  const std::string message = message_of({&program}, graph, options);
  CHECK(message.find("--device-memory") != std::string::npos);
  CHECK(number_after(message, "device memory budget of ") == 21);
  const std::int64_t least = number_after(message, "works is ");
  const std::int64_t good = number_after(message, "with ");
  const auto plan_within = [&](std::int64_t mib) {
    options.device_memory_bytes = mib * kMiB - options.device_reserved_bytes;
    return make_plan({&program}, graph, options);
  };
  check_plan({&program}, plan_within(least), graph, options);
  CHECK_THROWS_AS(plan_within(least - 1), BudgetError);
  CHECK_THROWS_AS(plan_within(1), BudgetError);
  const double unlimited = make_plan({&program}, graph, with_budgets(0, 100)).seconds;
  CHECK(plan_within(good).seconds <= 2 * unlimited);
  CHECK(plan_within(good * 9 / 10).seconds > 2 * unlimited);
}

TEST_CASE("plan: a host budget below a device that is too small names two that work") {
  const Program program = train_program(2, 256, 64, 40);
  const GraphCounts graph = small_graph();
  PlanOptions options = with_budgets(200, 1);
  options.reserved_bytes = 5 * kMiB;
  options.rates.storage_read = options.rates.storage_write = 2e8;
  const std::string message = message_of({&program}, graph, options);
  CHECK(message.find("--host-memory") != std::string::npos);
  CHECK(number_after(message, "a memory budget of ") == 6);
  const std::int64_t least = number_after(message, "works is ");
  const std::int64_t good = number_after(message, "with ");
  const auto plan_within = [&](std::int64_t mib) {
    options.memory_bytes = mib * kMiB - options.reserved_bytes;
    return make_plan({&program}, graph, options);
  };
  const Plan smallest = plan_within(least);
  check_plan({&program}, smallest, graph, options);
  CHECK(smallest.host->staging_slots == 1);
  CHECK_THROWS_AS(plan_within(least - 1), BudgetError);
  CHECK_THROWS_AS(plan_within(1), BudgetError);
  options.memory_bytes = 0;
  const double unlimited = make_plan({&program}, graph, options).seconds;
  CHECK(plan_within(good).seconds <= 2 * unlimited);
  CHECK(plan_within(good * 9 / 10).seconds > 2 * unlimited);
}
