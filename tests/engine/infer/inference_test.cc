#include "engine/infer/inference.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "storage/base/errors.h"
#include "tests/engine/minibatch/batch_world.h"
#include "tests/engine/run_fixture.h"

using namespace ooc;
using Catch::Matchers::Contains;
using Fixture = test::RunFixture;
using test::MemoryFileSystem;

TEST_CASE("inference: logits and classes come in the original order and agree with the scores") {
  Fixture fixture;
  fixture.run(fixture.files, false);
  const Checkpoint best = read_checkpoint(fixture.files, "/run/best.h5", DType::kF32);
  const auto infer = [&](Output output, const std::string& path) {
    return run_inference(fixture.files, *fixture.backend_, *fixture.io_, *fixture.dataset_, best,
                         {output, path}, nullptr);
  };
  const InferenceResult result = infer(Output::kLogits, "/logits.npy");
  CHECK(result.scores.front().valid == best.state.best.scores.front().valid);
  CHECK(result.scores.front().test == best.state.best.scores.front().test);
  infer(Output::kClasses, "/classes.npy");
  infer(Output::kEmbeddings, "/embeddings.npy");
  const auto logits = read_file(fixture.files, "/logits.npy");
  const auto classes = read_file(fixture.files, "/classes.npy");
  CHECK(logits.size() == 128 + 120 * 3 * 4);
  CHECK(classes.size() == 128 + 120 * 8);
  CHECK(read_file(fixture.files, "/embeddings.npy").size() == 128 + 120 * 12 * 4);
  const auto* logit = reinterpret_cast<const float*>(logits.data() + 128);
  const auto* predicted = reinterpret_cast<const std::int64_t*>(classes.data() + 128);
  std::int64_t correct = 0, count = 0;
  for (std::int64_t v = 0; v < 120; ++v) {
    CHECK(predicted[v] == std::max_element(logit + v * 3, logit + v * 3 + 3) - (logit + v * 3));
    if (v % 5 != 3) continue;  // the test split of tiny datasets, by original id
    correct += predicted[v] == (v * 7 + v / 5) % 3;
    ++count;
  }
  CHECK(static_cast<double>(correct) / static_cast<double>(count) ==
        Approx(result.scores.front().test));
}

TEST_CASE("inference: a graph with other features is refused") {
  Fixture fixture;
  fixture.run(fixture.files, false);
  const Checkpoint best = read_checkpoint(fixture.files, "/run/best.h5", DType::kF32);
  test::TinyDataset other;
  other.feature_cols = 9;
  other.edges = test::random_edges(60, 100, 1);
  const Dataset dataset = test::write_tiny_dataset(fixture.files, other, "/other.ooc");
  CHECK_THROWS_WITH(run_inference(fixture.files, *fixture.backend_, *fixture.io_, dataset, best,
                                  {.path = "/x.npy"}, nullptr),
                    Contains("dataset has 9 feature columns, the model was trained on 5"));
  CHECK_FALSE(fixture.files.exists("/x.npy"));
}

TEST_CASE("inference: a graph whose edges lack the types a model was trained on is refused") {
  MemoryFileSystem files;
  const auto backend = make_cpu_backend();
  test::TinyDataset spec;
  spec.edges = test::random_edges(60, 300, 1);
  spec.edge_types = 3;
  const Dataset typed = test::write_tiny_dataset(files, spec, "/typed.ooc");
  spec.edge_types = 0;
  const Dataset bare = test::write_tiny_dataset(files, spec, "/bare.ooc");
  RunConfig config;
  config.model.model = "ggnn";
  config.model.hidden = 6;
  test::MemoryBlockIo io(files);
  Trainer trainer(*backend, io, typed, config);
  REQUIRE(trainer.run_epoch(nullptr));
  const Checkpoint checkpoint = trainer.checkpoint();
  const auto infer = [&](const Dataset& dataset, const std::string& path) {
    run_inference(files, *backend, io, dataset, checkpoint, {.path = path}, nullptr);
  };
  infer(typed, "/typed.npy");
  CHECK(files.exists("/typed.npy"));
  CHECK_THROWS_AS(infer(bare, "/bare.npy"), DataError);
  CHECK_THROWS_WITH(infer(bare, "/bare.npy"), Contains("/bare.ooc") && Contains("types"));
  CHECK_FALSE(files.exists("/bare.npy"));
}

TEST_CASE("inference: sampled batches go together as scratch has room, or it is refused at once") {
  test::BatchWorld world(test::batch_graph(false, 1500));
  const RunConfig config = test::batch_config("sage", {4, 3}, 100);
  BatchTrainer trainer = world.trainer(config, world.options());
  REQUIRE(trainer.run_epoch(nullptr));
  const Checkpoint checkpoint = trainer.checkpoint();
  InferenceOptions options;
  options.path = "/rows.npy";
  options.force = true;
  options.budget = world.options().budget;
  options.scratch = "/";
  options.sampling = config.sampling;
  struct Result {
    std::vector<std::byte> rows;
    std::int64_t reads;
  };
  options.budget.host_bytes = 1;
  try {
    run_inference(world.files, *world.backend, world.io, world.dataset, checkpoint, options,
                  nullptr);
  } catch (const BudgetError& error) {
    options.budget.host_bytes = error.least_bytes;
  }
  const auto infer = [&](std::int64_t scratch_bytes) -> Result {
    options.budget.scratch_bytes = scratch_bytes;
    const std::int64_t before = world.io.reads;
    run_inference(world.files, *world.backend, world.io, world.dataset, checkpoint, options,
                  nullptr);
    return {read_file(world.files, options.path), world.io.reads - before};
  };
  const Result ample = infer(std::int64_t{1} << 40);
  std::int64_t room = 8 << 20, most_reads = 0;
  std::string refused;
  for (; refused.empty() && room > 1; room /= 4) {
    try {
      const Result fitted = infer(room);
      CHECK(fitted.rows == ample.rows);
      most_reads = std::max(most_reads, fitted.reads);
    } catch (const IoError& error) {
      refused = error.what();
    }
  }
  CHECK(most_reads > 2 * ample.reads);
  CHECK(room >= 1 << 10);
  CHECK_THAT(refused, Contains("are needed, and") && Contains("with one batch prepared at a time"));
}
