// Which of the epochs that a training could have it gets.
#include "engine/train/training_plan.h"

#include <catch2/catch.hpp>
#include <string>

#include "storage/base/errors.h"
#include "tests/support/plan_programs.h"

using namespace ooc;

namespace {

std::int64_t moved(const TrainingPlan& plan) { return plan.bytes_read() + plan.bytes_written(); }

// By an epoch of GCN of 2 layers on 4 M vertices, half of which train, and 120 M edges.
std::int64_t bytes_of_gcn(std::int64_t host_bytes, Strategy strategy, const MachineRates& rates) {
  const GraphCounts counts = test::graph_counts(4'000'000, 120'000'000);
  GraphFacts facts;
  facts.vertices = counts.edges.vertices;
  facts.feature_cols = 128;
  facts.classes = 16;
  facts.train_labels = facts.vertices / 2;
  RunConfig config;
  config.model.model = "gcn";
  config.model.hidden = 128;
  config.epochs = 3;
  config.cache_policy = strategy;
  RunBudget budget;
  budget.host_bytes = host_bytes;
  budget.plan.rates = rates;
  return moved(TrainingPlan(config, facts, counts, DType::kF32, budget));
}

}  // namespace

TEST_CASE("training plan: of epochs that take about as long the one that moves fewer bytes") {
  const auto bytes = [](const MachineRates& rates) {
    return bytes_of_gcn(1 << 30, Strategy::kDp, rates);
  };
  // All that storage moves goes on beside edges, and steps are nothing.
  MachineRates slow_edges;
  slow_edges.gather = 1e9;
  slow_edges.elementwise = slow_edges.multiply_adds = slow_edges.row_sums = 1e15;
  slow_edges.dropout = slow_edges.packing = 1e13;
  slow_edges.storage_read = slow_edges.storage_write = slow_edges.storage_both = 1e15;
  // An epoch is its steps, or its bytes.
  MachineRates slow_steps, slow_storage;
  slow_steps.elementwise = slow_steps.multiply_adds = slow_steps.row_sums = 1e8;
  slow_steps.dropout = 1e8;
  slow_storage.storage_read = slow_storage.storage_write = slow_storage.storage_both = 1e6;
  const std::int64_t least = bytes(slow_storage);
  CHECK(bytes(slow_steps) > least * 11 / 10);
  CHECK(bytes(slow_edges) <= least * 101 / 100);
}

TEST_CASE("training plan: lp computes again whatever moves more bytes, dp what takes longer") {
  const auto bytes = [](Strategy strategy, double products) {
    MachineRates rates;
    rates.multiply_adds = rates.row_sums = products;
    return bytes_of_gcn(256 << 20, strategy, rates);
  };
  constexpr double kSlow = 1e9, kFast = 1e15;
  CHECK(bytes(Strategy::kDp, kSlow) > bytes(Strategy::kDp, kFast) * 11 / 10);
  const std::int64_t fewest = bytes(Strategy::kDp, kFast) * 103 / 100;
  CHECK(bytes(Strategy::kLp, kSlow) <= fewest);
  CHECK(bytes(Strategy::kLp, kFast) <= fewest);
}

// Of features alone, aggregated once, and of epochs after that: each is planned by itself.
TEST_CASE("training plan: what a larger budget would do is said of what needs the most") {
  const GraphCounts counts = test::graph_counts(400'000, 4'000'000);
  const auto advice = [&](std::int64_t features, std::int64_t hidden) {
    GraphFacts facts;
    facts.vertices = counts.edges.vertices;
    facts.feature_cols = features;
    facts.classes = 8;
    facts.train_labels = facts.vertices / 2;
    RunConfig config;
    config.model.model = "gcn";
    config.model.hidden = hidden;
    RunBudget budget;
    budget.host_bytes = 4 << 20;
    budget.plan.workers = 2;
    try {
      TrainingPlan(config, facts, counts, DType::kF32, budget);
    } catch (const BudgetError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK_THAT(advice(64, 512), Catch::Contains("MiB an epoch is predicted"));
  CHECK_THAT(advice(1024, 8),
             Catch::Contains("MiB what comes before the first epoch is predicted"));
}
