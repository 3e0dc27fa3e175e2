// Training on several devices: every model's losses are the CPU's to the last bit.
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/train/config_words.h"
#include "storage/base/errors.h"
#include "tests/engine/tiny_training.h"
#include "tests/engine/train/all_models.h"
#include "tests/support/cases.h"

using namespace ooc;
using test::TinyTraining;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

// 130 blocks of 64 vertices: devices of very different loads, and cuts at any block that whole
// pages allow.
test::TinyDataset graph_of_small_blocks() {
  test::TinyDataset spec;
  spec.vertices = 8300;
  spec.feature_cols = 20;
  spec.block_rows = 64;
  spec.span_rows = 512;
  spec.panel_blocks = 16;
  spec.edges = test::random_edges(spec.vertices, 30000, 3);
  spec.edge_weights = true;
  spec.edge_types = 2;
  return spec;
}

PlanOptions options_of(std::int64_t devices, std::int64_t device_bytes) {
  PlanOptions options;
  options.device = true;
  options.devices = devices;
  options.device_memory_bytes = device_bytes;
  options.memory_bytes = device_bytes == 0 ? 0 : 8 * kMiB;
  return options;
}

// What the last epoch moved is what was planned.
void check_bytes(const EpochRecord& record, const Plan& plan) {
  for (const auto& [section, passes] : record.sections) {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const Pass& pass = plan.sections[static_cast<std::size_t>(section)].passes[i];
      const RunCounters& moved = passes[i].counters;
      INFO("pass " << pass.name);
      CHECK(moved.bytes_to_device == pass.bytes_to_device);
      CHECK(moved.bytes_from_device == pass.bytes_from_device);
      CHECK(moved.bytes_between_devices == pass.bytes_between_devices);
      CHECK(moved.bytes_read == pass.bytes_read);
      CHECK(moved.bytes_written == pass.bytes_written);
    }
  }
}

}  // namespace

TEST_CASE("training on devices: every model gives the CPU's losses on any number of them") {
  TinyTraining training(graph_of_small_blocks());
  test::Cases cases(8);
  std::uint64_t seed = 0;
  for (const char* model : test::kAllModels) {
    RunConfig config = test::config_of(model);
    const std::vector<double> expected = test::losses(training, config, {});
    REQUIRE(std::isfinite(expected.back()));
    // Ring off, one loader, two.
    for (const auto& [devices, loaders] :
         {std::pair{2, 1}, std::pair{3, 1}, std::pair{4, 0}, std::pair{8, 1}, std::pair{4, 2}}) {
      ++seed;
      if (!cases.next()) continue;
      const auto& [word, strategy] = kStrategies[seed % kStrategies.size()];
      config.cache_policy = strategy;
      INFO(model << " on " << devices << " devices, " << loaders << " loaders, --cache-policy "
                 << word);
      // Ample memory; or as little as may be, by queues that run late and in another order each
      // time.
      PlanOptions options = options_of(devices, seed % 2 == 0 ? 0 : 3 * kMiB);
      options.ring_loaders = loaders;
      if (seed % 2 == 1) training.be_strict(seed % 10);
      if (seed % 3 == 1) options.compute.lanes = 5;
      EpochRecord last;
      const std::vector<double> found = test::losses(training, config, options, &last);
      check_bytes(last, training.trainer().plan().epoch_plan());
      if (loaders < 2) CHECK(found == expected);
      for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(found[i] == Approx(expected[i]).epsilon(i % 3 == 2 ? 1e-3 : 1e-5));  // of a few rows
      }
      training.use([] { return make_virtual_cpu_device("cpu:1", 0); });
    }
  }
}

TEST_CASE("training on devices: more of them than blocks is an error with both numbers") {
  TinyTraining training;  // of twelve blocks
  try {
    training.start(test::config_of("gcn"), options_of(13, 0));
    FAIL("thirteen devices for twelve blocks");
  } catch (const UsageError& error) {
    CHECK_THAT(error.what(), Catch::Contains("13 devices") && Catch::Contains("12 blocks"));
  }
}
