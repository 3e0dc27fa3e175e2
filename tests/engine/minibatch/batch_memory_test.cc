// For which batches memory is planned.
#include "engine/batches/batch_memory.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "engine/batches/prepared_batches.h"
#include "tests/engine/minibatch/batch_world.h"

namespace ooc {
namespace {

using test::BatchWorld;
using Rows = std::vector<std::int64_t>;

Rows rows_of(const BatchTrainer& trainer) { return trainer.plan_json().at("level_rows"); }

// Edges from few vertices to most others, whose number of in-edges grows with their id.
test::TinyDataset skewed_graph() {
  test::TinyDataset spec = test::batch_graph(false, 6000);
  spec.edges.clear();
  test::SplitMix random(3);
  for (std::int64_t vertex = 0; vertex < spec.vertices; ++vertex) {
    for (std::int64_t edge = 0; edge < 1 + vertex / 300; ++edge) {
      const auto source = static_cast<std::int64_t>(random() % 6000);
      spec.edges.push_back(
          {static_cast<std::uint32_t>(source * source / 6000), static_cast<std::uint32_t>(vertex)});
    }
  }
  spec.span_rows = spec.block_rows = 1024;
  spec.panel_blocks = 4;
  return spec;
}

TEST_CASE("batch_memory: any batch has room, or in too little for that those that are likely") {
  struct Case {
    test::TinyDataset spec;
    Rows fanouts;
    std::int64_t batch_size;
    bool is_fewer;
  };
  // In the last ones an evaluation's batch has seeds of both splits.
  const Case cases[] = {{skewed_graph(), {8, 6}, 100, true},
                        {skewed_graph(), {5, 3}, 17, false},
                        {test::batch_graph(false, 3000), {1, 1}, 1024, true},
                        {skewed_graph(), {1, 2}, 5000, false}};
  for (const auto& [spec, fanouts, batch_size, is_fewer] : cases) {
    RunConfig config = test::batch_config("sage", fanouts, batch_size);
    BatchWorld world(spec);
    BatchTrainerOptions options = world.options();
    BatchTrainer ample = world.trainer(config, options);
    BatchLoaderOptions loading;
    for (const std::int64_t fanout : fanouts) loading.hops.push_back({.fanout = fanout});
    loading.batch_size = batch_size;
    const Rows any = most_level_rows(loading, spec.vertices, world.dataset.edges());
    CHECK(rows_of(ample) == any);
    options.budget = test::least_budget(world, config);
    BatchTrainer tight = world.trainer(config, options);
    const Rows likely = rows_of(tight);
    INFO("batches of " << batch_size << ": " << likely.back() << " of " << any.back());
    CHECK(likely.front() == any.front());
    CHECK(likely.back() <= any.back());
    CHECK((likely.back() < any.back()) == is_fewer);
    // None is refused.
    CHECK(tight.run_epoch(nullptr).value().loss == ample.run_epoch(nullptr).value().loss);
  }
}

TEST_CASE("batch_memory: where degrees don't say what is likely any batch has room") {
  BatchWorld world(skewed_graph());
  for (const bool all : {false, true}) {
    RunConfig config = test::batch_config("sage", {all ? HopSampling::kAll : 4, 3}, 100);
    config.sampling.replace = !all;
    BatchTrainerOptions options = world.options();
    const Rows any = rows_of(world.trainer(config, options));
    options.budget = test::least_budget(world, config);
    CHECK((rows_of(world.trainer(config, options)) == any) == all);
  }
}

TEST_CASE("batch_memory: likely batches leave memory until any of them takes half of it") {
  BatchWorld world(skewed_graph());
  const RunConfig config = test::batch_config("sage", {8, 6}, 100);
  const std::int64_t least = test::least_budget(world, config).host_bytes;
  BatchTrainerOptions options = world.options();
  std::vector<Rows> rows;  // by budget: 3/2 of the least, 2, 3 and 4 times the least
  for (const std::int64_t halves : {3, 4, 6, 8}) {
    options.budget.host_bytes = least * halves / 2;
    rows.push_back(rows_of(world.trainer(config, options)));
  }
  CHECK(rows[0].back() < rows[3].back());
  CHECK(rows[1] == rows[0]);
  CHECK(rows[2] == rows[3]);
}

TEST_CASE("batch_memory: the least is that of an evaluation on the whole graph, where it is more") {
  test::TinyDataset spec = test::batch_graph(false, 20000);
  spec.span_rows = spec.block_rows = 16384;
  BatchWorld world(spec);
  RunConfig config = test::batch_config("gat", {1, 1}, 2);
  config.model.hidden = 1024;
  BatchTrainerOptions options = world.options();
  options.budget.host_bytes = 1 << 20;
  CHECK_THROWS_WITH(world.trainer(config, options),
                    Catch::Matchers::Contains("a memory budget of 1 MiB is too small") &&
                        Catch::Matchers::Contains("for an evaluation on the whole graph"));
  options.budget = test::least_budget(world, config);
  CHECK_NOTHROW(world.trainer(config, options));
  config.sampling.eval_fanouts.hops = {1, 1};
  CHECK(test::least_budget(world, config).host_bytes < options.budget.host_bytes);
}

TEST_CASE("batch_memory: logits are kept where metrics need them") {
  BatchWorld world(skewed_graph());
  RunConfig config = test::batch_config("sage", {5, 3}, 17);
  const std::int64_t least = test::least_budget(world, config).host_bytes;
  config.metrics = {Metric::kMacroF1};
  const std::int64_t rows_bytes = 2 * 6000 * static_cast<std::int64_t>(sizeof(float));
  CHECK(test::least_budget(world, config).host_bytes >= least + rows_bytes);
}

// A million vertices of 128 features, in an order of their own, and 16 workers.
TEST_CASE("batch_memory: what is shared out is never more than the budget") {
  SampledCounts counts;
  counts.graph.edges = {1'000'000, 16'000'000, 16384, 65536, 16, {.feature_cols = 32}};
  counts.largest_chunk = 4 << 20;
  counts.train = 1'000'000;
  counts.is_named = true;
  counts.tensors["features"] = {DType::kF32, {1'000'000, 128, 16384}, 1};
  BatchLoaderOptions loading;
  loading.hops = {{.fanout = 2}};
  loading.batch_size = 100;
  loading.inputs = {{"features", DType::kF32, 1, 128}};
  loading.workers = 16;
  RunBudget budget;
  const auto share = [&](std::int64_t bytes) {
    budget.host_bytes = bytes;
    return share_sampling_memory(counts, loading, {}, budget);
  };
  std::int64_t least = 0;
  try {
    share(1);
  } catch (const BudgetError& error) {
    least = error.least_bytes;
  }
  REQUIRE(least > 0);
  const EdgeData& data = counts.graph.edges.data;
  for (std::int64_t bytes = least; bytes < 20 * least; bytes += bytes / 8) {
    const BatchMemory memory = share(bytes);
    const std::int64_t lists_of_workers = 16 * ExpandPass::worker_bytes(data, true);
    const std::int64_t slots =
        edge_slot_count(counts.graph.edges, counts.largest_chunk, memory.edge_slots, true);
    INFO(bytes << " bytes, the least is " << least);
    CHECK(memory.hot_rows >= 0);
    CHECK(memory.hot_rows + 4 * memory.lists + memory.ranges + memory.writes + lists_of_workers +
              2 * slots * counts.largest_chunk <=
          bytes);
    // Who asks has a key and what the edge carries, and that once more while it is sorted.
    const SuperbatchOptions limits = superbatch_limits(memory, data, loading.workers);
    const auto records = static_cast<std::int64_t>(limits.resolve.range_records);
    CHECK(limits.resolve.ranges_at_once * records *
              static_cast<std::int64_t>(sizeof(std::uint64_t) + 2 * data.bytes()) <=
          memory.ranges);
  }
  CHECK(share(20 * least).lists > share(least).lists);
  CHECK(share(20 * least).hot_rows > share(least).hot_rows);
  // All rows, and twice where those of two superbatches differ.
  constexpr std::int64_t kMuch = std::int64_t{1} << 36;
  const std::int64_t all_rows = share(kMuch).hot_rows;
  loading.are_alike = false;
  CHECK(share(kMuch).hot_rows == 2 * all_rows);
}

}  // namespace
}  // namespace ooc
