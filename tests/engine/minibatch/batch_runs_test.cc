// What changes no bit of a sampled run: workers, memory, stops, resumption; and what changes only
// the last ones: the order of vertices.
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/batches/batch_programs.h"
#include "engine/train/training_plan.h"
#include "storage/base/errors.h"
#include "tests/engine/minibatch/batch_world.h"

namespace ooc {
namespace {

using test::BatchWorld;
using test::least_budget;
using test::TinyDataset;

using Bits = std::vector<std::byte>;

enum class Memory { kUnlimited, kEnough, kLeast };

Bits run_with(const TinyDataset& spec, const RunConfig& config, int workers, Memory memory) {
  BatchWorld world(spec);
  const tbb::global_control as_many(tbb::global_control::max_allowed_parallelism, 4);
  tbb::task_arena arena(workers);
  return arena.execute([&] {
    BatchTrainerOptions options = world.options();
    if (memory == Memory::kUnlimited) options.budget = {};
    if (memory == Memory::kLeast) options.budget = least_budget(world, config);
    BatchTrainer trainer = world.trainer(config, options);
    return test::bits_of_run(trainer);
  });
}

TEST_CASE("batch_runs: bits depend neither on workers nor on memory") {
  for (const char* const model : test::kAllModels) {
    const std::string name = model;
    for (const bool carries : {false, true}) {
      const TinyDataset spec = test::batch_graph(carries);
      RunConfig config = test::batch_config(model);
      config.epochs = 2;
      config.sampling.replace = name == "gat" || name == "gcn";
      if (name == "sage") config.model.norm = Norm::kBatch;
      INFO(model << (carries ? " with edge data" : ""));
      const Bits bits = run_with(spec, config, 1, Memory::kEnough);
      CHECK(run_with(spec, config, 3, Memory::kLeast) == bits);
      if (name == "gat") CHECK(run_with(spec, config, 2, Memory::kUnlimited) == bits);
    }
  }
}

// Rows of several blocks, and of several tasks a stage.
TEST_CASE("batch_runs: nor where batches are large") {
  TinyDataset spec = test::batch_graph(false, 9000);
  spec.span_rows = 1024;
  spec.block_rows = 256;
  RunConfig config = test::batch_config("gcn", {4, 3}, 1500);
  config.epochs = 1;
  for (const bool replace : {false, true}) {
    config.sampling.replace = replace;
    const Bits bits = run_with(spec, config, 1, Memory::kUnlimited);
    CHECK(run_with(spec, config, 3, Memory::kEnough) == bits);
    CHECK(run_with(spec, config, 3, Memory::kLeast) == bits);
  }
}

TEST_CASE("batch_runs: one byte less than the least memory is refused") {
  const RunConfig config = test::batch_config("gcn");
  BatchWorld world(test::batch_graph(true));
  BatchTrainerOptions options = world.options();
  options.budget = least_budget(world, config);
  CHECK(world.trainer(config, options).plan_json().at("host_memory") == options.budget.host_bytes);
  --options.budget.host_bytes;
  CHECK_THROWS_AS(world.trainer(config, options), BudgetError);
}

TEST_CASE("batch_runs: what is sampled differs by batch, epoch, seed, and with replacement") {
  const TinyDataset spec = test::batch_graph(false);
  RunConfig config = test::batch_config("gcn");
  config.model.dropout = 0;
  config.lr = 0;  // the same parameters in every epoch
  std::set<double> losses, valid_losses;
  for (const std::int64_t seed : {0, 1}) {
    for (const bool replace : {false, true}) {
      config.seed = 0;
      config.sampling.replace = replace;
      BatchWorld world(spec);
      BatchTrainer first = world.trainer(config, world.options());
      const Checkpoint fresh = first.checkpoint();
      config.seed = seed;
      BatchTrainer trainer = world.trainer(config, world.options());
      trainer.restore(fresh, "memory");
      for (const EpochRecord& record : test::run_all(trainer)) {
        losses.insert(record.loss);
        valid_losses.insert(record.valid_loss);
      }
    }
  }
  CHECK(losses.size() == 12);
  CHECK(valid_losses.size() == 12);
}

// The bits of each epoch and of the state after it.
std::vector<Bits> epochs_of(BatchTrainer& trainer) {
  std::vector<Bits> epochs;
  while (trainer.state().epoch < trainer.config().epochs) {
    Bits bits = test::bits_of(trainer.run_epoch(nullptr).value());
    const Bits state = test::bits_of(trainer.state());
    bits.insert(bits.end(), state.begin(), state.end());
    epochs.push_back(bits);
  }
  return epochs;
}

// Models of which something is computed once a run, and of which nothing is.
std::vector<RunConfig> stopped_configs(const Dataset& dataset) {
  RunConfig weighted = test::batch_config("sage"), norm = test::batch_config("gat");
  norm.model.norm = Norm::kBatch;
  norm.sampling.replace = true;
  norm.eval_every = 2;
  const GraphFacts facts = facts_of(dataset);
  REQUIRE_FALSE(BatchPrograms(weighted, facts, DType::kF32).precompute.empty());
  REQUIRE(BatchPrograms(norm, facts, DType::kF32).precompute.empty());
  return {weighted, norm};
}

TEST_CASE("batch_runs: stopped after every batch, an epoch is the same") {
  const TinyDataset spec = test::batch_graph(true);
  BatchWorld world(spec);
  for (const RunConfig& config : stopped_configs(world.dataset)) {
    world.io.reads = 0;
    BatchTrainer undisturbed = world.trainer(config, world.options());
    const std::vector<Bits> expected = epochs_of(undisturbed);
    std::atomic<bool> stop{false};
    std::int64_t stop_after = 0, seen = 0;
    BatchTrainerOptions options = world.options();
    options.on_batch = [&](std::int64_t, std::int64_t done, std::int64_t batches) {
      REQUIRE(batches == 9);  // of 60 vertices
      REQUIRE(done == ++seen);
      if (done == stop_after) stop = true;
    };
    BatchTrainer trainer = world.trainer(config, options);
    for (std::int64_t epoch = 1; epoch <= 2; ++epoch) {
      seen = 0;
      for (stop_after = 1; stop_after <= 9; ++stop_after) {
        INFO(config.model.model << " epoch " << epoch << ", stopped after batch " << stop_after);
        stop = false;
        REQUIRE_FALSE(trainer.run_epoch(&stop));
        REQUIRE(seen == stop_after);
        REQUIRE(trainer.state().trained_to() == TrainedTo{epoch - 1, stop_after});
      }
      stop = false;
      Bits bits = test::bits_of(trainer.run_epoch(&stop).value());
      const Bits state = test::bits_of(trainer.state());
      bits.insert(bits.end(), state.begin(), state.end());
      REQUIRE(bits == expected[static_cast<std::size_t>(epoch - 1)]);
    }
  }
}

TEST_CASE("batch_runs: stopped at any read, an epoch is the same") {
  const TinyDataset spec = test::batch_graph(true);
  BatchWorld world(spec);
  for (const RunConfig& config : stopped_configs(world.dataset)) {
    world.io.reads = 0;
    const BatchTrainerOptions options = world.options();
    BatchTrainer undisturbed = world.trainer(config, options);
    const std::vector<Bits> expected = epochs_of(undisturbed);
    const std::int64_t reads = world.io.reads;
    REQUIRE(reads > 50);
    int stopped = 0;
    for (std::int64_t at = 1; at <= reads; at += 13) {
      INFO(config.model.model << ", stopped at read " << at << " of " << reads);
      std::atomic<bool> stop{false};
      world.io.reads = 0;
      world.io.stop = &stop;
      world.io.stop_at_read = at;
      BatchTrainer trainer = world.trainer(config, options);
      std::vector<Bits> epochs;
      while (trainer.state().epoch < config.epochs) {
        const std::optional<EpochRecord> record = trainer.run_epoch(&stop);
        if (!record) {
          ++stopped;
          REQUIRE(stop.exchange(false));
          continue;
        }
        Bits bits = test::bits_of(*record);
        const Bits state = test::bits_of(trainer.state());
        bits.insert(bits.end(), state.begin(), state.end());
        epochs.push_back(bits);
      }
      REQUIRE(epochs == expected);
      world.io.stop = nullptr;
    }
    CHECK(stopped == (reads + 12) / 13);
  }
}

TEST_CASE("batch_runs: after an error of storage the epoch can be run again") {
  const TinyDataset spec = test::batch_graph(true);
  BatchWorld world(spec);
  const RunConfig config = stopped_configs(world.dataset).front();
  const BatchTrainerOptions options = world.options();
  BatchTrainer undisturbed = world.trainer(config, options);
  const std::vector<Bits> expected = epochs_of(undisturbed);
  const std::int64_t reads = world.io.reads;
  for (std::int64_t at = 1; at <= reads; at += 37) {
    INFO("read " << at << " of " << reads << " fails");
    world.io.reads = 0;
    world.io.faults.first_failing_read = at;
    BatchTrainer trainer = world.trainer(config, options);
    std::vector<Bits> epochs;
    int errors = 0;
    while (trainer.state().epoch < config.epochs) {
      try {
        Bits bits = test::bits_of(trainer.run_epoch(nullptr).value());
        const Bits state = test::bits_of(trainer.state());
        bits.insert(bits.end(), state.begin(), state.end());
        epochs.push_back(bits);
      } catch (const IoError&) {
        ++errors;
        world.io.faults.first_failing_read = 0;
      }
    }
    CHECK(errors >= 1);  // what is made ahead may have met it, too
    CHECK(errors <= 2);
    REQUIRE(epochs == expected);
  }
}

void check_close(const std::vector<EpochRecord>& a, const std::vector<EpochRecord>& b,
                 double within) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("epoch " << i + 1);
    CHECK(a[i].loss == Approx(b[i].loss).epsilon(within));
    CHECK(a[i].valid_loss == Approx(b[i].valid_loss).epsilon(within));
  }
}

std::vector<EpochRecord> records_of(const TinyDataset& spec, const RunConfig& config, DType real) {
  BatchWorld world(spec);
  BatchTrainerOptions options = world.options();
  options.real = real;
  BatchTrainer trainer = world.trainer(config, options);
  return test::run_all(trainer);
}

TEST_CASE("batch_runs: a permuted dataset gives the losses of the natural one") {
  for (const char* const model : test::kAllModels) {
    for (const bool carries : {false, true}) {
      const std::string name = model;
      TinyDataset natural = test::batch_graph(carries), permuted = natural;
      permuted.permute = true;
      RunConfig config = test::batch_config(model);
      config.sampling.replace = name == "sage" && carries;
      config.model.input_dropout = 0.2;
      INFO(model << (carries ? " with edge data" : ""));
      check_close(records_of(permuted, config, DType::kF64),
                  records_of(natural, config, DType::kF64), 1e-8);
      if (name != "gcn" && name != "gat") continue;
      config.epochs = 6;
      check_close(records_of(permuted, config, DType::kF32),
                  records_of(natural, config, DType::kF32), 1e-5);
    }
  }
}

}  // namespace
}  // namespace ooc
