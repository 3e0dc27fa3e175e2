// What is said of an epoch's bytes before it, and of a superbatch's once it is made, against what
// is moved.
#include "engine/batches/batch_forecast.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/engine/minibatch/batch_world.h"

namespace ooc {
namespace {

using test::BatchWorld;
using test::least_budget;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kMuch = 1 << 30, kMiB = 1 << 20;

// 1,000 vertices of 4 in-edges and 4 out-edges, in one span and one block, with 16 features.
SampledCounts counts_of_thousand() {
  SampledCounts counts;
  counts.graph.edges = {1000, 4000, 1024, 1024, 1};
  counts.graph.out.bytes = 5000;
  counts.largest_chunk = 8192;
  counts.train = 100;
  counts.tensors["features"] = {DType::kF32, {1000, 16, 1024}, 1};
  counts.degrees = {{1000, 100, 0, 4, 4}};
  return counts;
}

BatchLoaderOptions ten_batches() {
  BatchLoaderOptions options;
  options.hops = {{.fanout = 2}};
  options.batch_size = 10;
  options.inputs = {{"features", DType::kF32, 1, 16}};
  options.memory = {kMuch, kMuch, kMuch, kMiB, 16 * kMiB};
  return options;
}

BatchForecast forecast_first(const SampledCounts& counts, const BatchLoaderOptions& options,
                             bool chooses = true) {
  return forecast_batches(counts, options, &DegreeClass::train,
                          forecast_hot(counts, options, &DegreeClass::train), chooses);
}

TEST_CASE("batch_forecast: a small case by hand") {
  BatchLoaderOptions options = ten_batches();
  const auto forecast = [&] { return forecast_first(counts_of_thousand(), options); };
  const BatchForecast ample = forecast();
  // 20 edges of 4,000 come from a vertex with 4 of them, if it isn't one of the 10 seeds.
  const double vertices = 10 + 990 * (1 - std::exp(-0.02));
  CHECK(ample.batches == 10);
  CHECK(ample.superbatches == 1);
  CHECK(ample.edge_readings == 1);
  CHECK(ample.batch_vertices == Approx(vertices));
  CHECK(ample.batch_edges == Approx(20));
  CHECK(ample.hot_rows == Approx(1000 * (1 - std::pow(1 - vertices / 1000, 10))));
  CHECK(ample.hot_share == Approx(1));
  CHECK(ample.bytes_read() == 5000 + 64000);
  CHECK(ample.bytes_written() == 0);
  CHECK(forecast_first(counts_of_thousand(), options, false).bytes_read() == 5000);

  options.memory.hot_rows = 0;
  const BatchForecast cold = forecast();
  CHECK(cold.hot_rows == 0);
  CHECK(cold.hot_share == Approx(0).margin(1e-6));
  CHECK(cold.cold_bytes == Approx(10 * vertices * 64));
  CHECK(cold.bytes_read() == Approx(69000 + cold.cold_bytes).margin(1));
  CHECK(cold.scratch == Approx(cold.cold_bytes));

  // Of batches that aren't alike each superbatch has hot rows of its own, in half of their memory.
  options.are_alike = false;
  options.memory.hot_rows = 2 * 1000 * 64;
  options.memory.batches = 4;
  const BatchForecast own = forecast();
  CHECK(own.superbatches == 3);
  CHECK(own.cold_bytes == Approx(0).margin(1e-3));
  CHECK(own.bytes_read() == Approx(3 * (5000 + 64000)).margin(1));
  options.memory.hot_rows = 100 * 64;
  CHECK(forecast().hot_rows == Approx(50));
  options = ten_batches();
  options.memory.hot_rows = 0;

  // Lists of chosen edges and of a batch's edges, of who asks, of vertices and of their places.
  options.memory.lists = 0;
  const BatchForecast filed = forecast();
  CHECK(filed.list_bytes_written == Approx(8 * (2 * 200 + 100 + 2 * 10 * vertices)));
  CHECK(filed.list_bytes_read > filed.list_bytes_written);

  options.memory.writes = 4 * 128 << 10;  // for four batches
  CHECK(forecast().superbatches == 3);
  CHECK(forecast().edge_readings == 3);
  options.hops[0].replace = true;
  options.hops[0].fanout = 40;
  CHECK(forecast().batch_edges == Approx(400));
  CHECK(forecast().batch_vertices < 10 + 40);
}

TEST_CASE("batch_forecast: seeds of a large graph that nobody looked at are as other vertices") {
  SampledCounts counts = counts_of_thousand();
  counts.graph.edges.vertices = 2 * kMostClassified;
  const auto of = [&](double seen) {
    counts.degrees = {{2.0 * kMostClassified, seen, 0, 4, 4}};
    return forecast_first(counts, ten_batches());
  };
  CHECK(of(0).batches == 10);
  CHECK(of(0).batch_edges == Approx(20));
  CHECK(of(0).batch_vertices == of(1).batch_vertices);
}

// Ten vertices that every batch asks for, and no others.
TEST_CASE("batch_forecast: hot rows fill their memory") {
  BatchLoaderOptions options = ten_batches();
  options.hops.clear();
  SampledCounts counts = counts_of_thousand();
  counts.degrees = {{10, 100, 0, 0, 0}, {990, 0, 0, 0, 0}};
  const auto share = [&](std::int64_t rows) {
    options.memory.hot_rows = 64 * rows;
    return forecast_first(counts, options).hot_share;
  };
  CHECK(share(10) == Approx(1).margin(1e-6));
  CHECK(share(9) == Approx(0.9).margin(1e-6));
  CHECK(share(0) == Approx(0).margin(1e-6));
}

TEST_CASE("batch_forecast: more memory never moves more") {
  SampledCounts counts = counts_of_thousand();
  counts.graph.edges = {10'000'000, 100'000'000, 16384, 65536, 16};
  counts.graph.out.bytes = 400'000'000;
  counts.largest_chunk = kMiB;
  counts.train = 100'000;
  counts.tensors["features"].layout = {10'000'000, 16, 16384};
  counts.degrees = assumed_degrees(counts.vertices(), counts.edges(), counts.train);
  BatchLoaderOptions options = ten_batches();
  options.hops = {{.fanout = 10}, {.fanout = 5}};
  options.batch_size = 500;
  const bool chooses = GENERATE(false, true);
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t memory = kMiB; memory < 4 * kMuch; memory *= 2) {
    options.memory = {memory, memory / 4, memory / 8, memory / 8, memory / 8};
    const BatchForecast forecast = forecast_first(counts, options, chooses);
    const std::int64_t bytes = forecast.bytes_read() + forecast.bytes_written();
    CHECK(bytes <= before);
    before = bytes;
  }
}

TEST_CASE("batch_forecast: degrees that are assumed add up, and are as skewed as they should be") {
  double vertices = 0, edges = 0, first = 0, train = 0;
  for (const DegreeClass& of : assumed_degrees(1'000'000, 15'000'000, 100)) {
    // Most often sources come first.
    if (vertices < 0.1e6 * 0.999) first += of.vertices * of.out;
    vertices += of.vertices;
    edges += of.vertices * of.out;
    train += of.train;
  }
  CHECK(vertices == Approx(1e6));
  CHECK(train == Approx(100));
  CHECK(edges == Approx(15e6).epsilon(0.01));
  CHECK(1 - first / 15e6 == Approx(std::exp(-5.4 * std::pow(0.1, 0.72))).epsilon(0.2));
}

void check_epoch(BatchWorld& world, const RunConfig& config, const RunBudget& budget,
                 double within) {
  BatchTrainerOptions options = world.options();
  options.budget = budget;
  BatchTrainer trainer = world.trainer(config, options);
  const Json plan = trainer.plan_json().at("forecast");
  const EpochForecast forecast = trainer.forecast();
  trainer.run_epoch(nullptr);  // hot rows come with it
  const EpochRecord record = trainer.run_epoch(nullptr).value();
  const auto read = static_cast<double>(record.counters.bytes_read);
  const auto written = static_cast<double>(record.counters.bytes_written);
  CHECK(plan.at("bytes_read_per_epoch").get<double>() == Approx(read).epsilon(within));
  CHECK(plan.at("bytes_written_per_epoch").get<double>() == Approx(written).epsilon(within));
  CHECK(static_cast<double>(forecast.bytes) == Approx(read + written).epsilon(within));
  CHECK(forecast.bound_seconds > 0);
  CHECK(forecast.seconds >= forecast.bound_seconds);

  std::int64_t all_read = 0, batches = 0;
  for (const Json& pass : trainer.passes_json(record)) {
    for (const Json& of : pass.value("superbatches", Json::array())) {
      INFO(of.dump());
      for (const std::string way : {"read", "written"}) {
        const auto planned = of.at("planned_" + way).get<double>();
        const auto moved = of.at("bytes_" + way).get<double>();
        CHECK(moved <= 1.02 * planned);
        CHECK(moved >= 0.8 * planned);
      }
      all_read += of.at("bytes_read").get<std::int64_t>();
      batches += of.at("batches").get<std::int64_t>();
    }
  }
  CHECK(all_read == record.counters.bytes_read);
  CHECK(batches > trainer.batches());  // with those of the evaluation
}

TEST_CASE("batch_forecast: an epoch moves what was said, a superbatch what is known of it") {
  test::TinyDataset spec = test::batch_graph(false, 12000);
  spec.span_rows = spec.block_rows = 1024;
  spec.panel_blocks = 4;
  RunConfig config = test::batch_config("sage", {6, 4}, 250);
  config.sampling.eval_fanouts.hops = {3, 3};
  for (const bool replace : {false, true}) {
    config.sampling.replace = replace;
    BatchWorld world(spec);
    check_epoch(world, config, world.options().budget, 0.1);
    check_epoch(world, config, least_budget(world, config), 0.25);
  }
}

TEST_CASE("batch_forecast: an evaluation on the whole graph reads what batches had no memory for") {
  test::TinyDataset spec = test::batch_graph(false, 12000);
  spec.span_rows = spec.block_rows = 1024;
  spec.panel_blocks = 4;
  RunConfig config = test::batch_config("sage", {6, 4}, 250);
  config.sampling.eval_fanouts.exact = true;
  BatchWorld world(spec);
  BatchTrainer trainer = world.trainer(config, world.options());
  const Json plan = trainer.plan_json().at("forecast");
  trainer.run_epoch(nullptr);
  const EpochRecord record = trainer.run_epoch(nullptr).value();
  const std::int64_t features = 12000 * 40 * static_cast<std::int64_t>(sizeof(float));
  CHECK(plan.at("evaluation").at("bytes_read").get<std::int64_t>() > features);
  CHECK(plan.at("bytes_read_per_epoch").get<double>() ==
        Approx(static_cast<double>(record.counters.bytes_read)).epsilon(0.1));
}

TEST_CASE("batch_forecast: as many batches go together as scratch has room for") {
  test::TinyDataset spec = test::batch_graph(false, 12000);
  spec.span_rows = spec.block_rows = 1024;
  spec.panel_blocks = 4;
  const RunConfig config = test::batch_config("sage", {6, 4}, 250);
  BatchWorld world(spec);
  BatchTrainerOptions options = world.options();
  options.budget = least_budget(world, config);
  const auto forecast_of = [](const BatchTrainer& trainer) {
    return trainer.plan_json().at("forecast");
  };
  BatchTrainer ample = world.trainer(config, options);
  const auto bytes = forecast_of(ample).at("scratch_bytes").get<std::int64_t>();
  const auto superbatches = [&](const BatchTrainer& trainer) {
    return forecast_of(trainer).at("training").at("superbatches").get<int>();
  };
  options.budget.scratch_bytes = bytes / 2;
  BatchTrainer fitted = world.trainer(config, options);
  CHECK(forecast_of(fitted).at("scratch_bytes").get<std::int64_t>() <= bytes / 2);
  CHECK(superbatches(ample) == 1);
  CHECK(superbatches(fitted) == 4);
  CHECK(fitted.run_epoch(nullptr).value().loss == ample.run_epoch(nullptr).value().loss);
  options.budget.scratch_bytes = 10'000;
  try {
    world.trainer(config, options);
    FAIL("there is room");
  } catch (const IoError& error) {
    const std::string what = error.what();
    CHECK(what.find("9.8 KiB are free") != std::string::npos);
    CHECK(what.find("with one batch prepared at a time, /; free some") != std::string::npos);
  }
}

}  // namespace
}  // namespace ooc
