// For which batches memory is planned.
#include "engine/batches/batch_memory.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace ooc
