// Training on the strict device: every model's losses are the CPU's to the last bit, by every
// strategy and in budgets of all three tiers.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

#include "engine/train/config_words.h"
#include "storage/base/errors.h"
#include "tests/engine/tiny_training.h"
#include "tests/engine/train/all_models.h"
#include "tests/support/cases.h"

using namespace ooc;
using test::TinyTraining;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

}  // namespace

TEST_CASE("strict training: every model gives the CPU's losses, by every strategy and budget") {
  test::TinyDataset spec = test::graph_of_three_spans();
  spec.edge_weights = true;
  spec.edge_types = 2;
  TinyTraining training(spec);
  test::Cases cases(8);
  // One seed after the other, or at night each with all ten.
  const std::uint64_t seeds = std::getenv("OOC_NIGHTLY") != nullptr ? 10 : 1;
  std::uint64_t seed = 0;
  for (const char* model : test::kAllModels) {
    RunConfig config = test::config_of(model);
    const std::vector<double> expected = test::losses(training, config, {});
    REQUIRE(std::isfinite(expected.back()));
    for (const auto& [word, strategy] : kStrategies) {
      config.cache_policy = strategy;
      // Ample memory; a device's that is scarce; one that is too scarce for all but a few rows.
      std::int64_t ran = 0;
      for (const std::int64_t device : {64 * kMiB, 3 * kMiB / 2, 3 * kMiB / 4}) {
        ++seed;
        if (!cases.next()) continue;
        INFO(model << ", --cache-policy " << word << ", device " << device << ", seed "
                   << seed % 10);
        PlanOptions options;
        options.memory_bytes = device == 64 * kMiB ? 0 : 2 * device;
        options.workers = 2;
        options.device = true;
        options.device_memory_bytes = device;
        options.compute.lanes = seed % 3 == 0 ? 0 : 5;
        bool fits = true;
        for (std::uint64_t more = 0; fits && more < seeds; ++more) {
          training.be_strict((seed + more) % 10);
          std::vector<double> found = expected;
          try {
            found = test::losses(training, config, options);
          } catch (const BudgetError&) {
            REQUIRE(device < kMiB);
            fits = false;
          }
          CHECK(found == expected);
        }
        ran += fits ? 1 : 0;
      }
      if (cases.runs_all()) CHECK(ran >= 2);
    }
  }
}
