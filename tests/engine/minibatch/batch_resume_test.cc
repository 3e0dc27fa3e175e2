// Sampled runs in a run directory: interrupted and resumed they are those of nobody's interruption.
#include <catch2/catch.hpp>

#include "engine/minibatch/batch_trainer.h"
#include "storage/base/errors.h"
#include "tests/engine/run_fixture.h"

namespace ooc {
namespace {

using test::kRun;

struct Killed {};

struct Fixture : test::RunFixture {
  Fixture() {
    config.sampling.fanouts.hops = {3, 2};
    config.sampling.batch_size = 10;
    config.sampling.eval_fanouts.hops = {-1, 4};
    config.model.dropout = 0.4;
    config.metrics = {Metric::kAccuracy, Metric::kMacroF1};
    config.weight_decay = 5e-4;
    config.checkpoint_batches = 2;
  }

  // As `ooc-train`: a fresh process for each call. Stops as soon as epoch `stop_after` is done, or
  // `stop_batch` of the epoch after it, if that is above 0.
  RunResult run(bool resume, std::int64_t stop_after = -1, std::int64_t stop_batch = 0) {
    RunDirectory directory =
        resume ? RunDirectory::open(files, kRun) : RunDirectory::create(files, kRun, config, false);
    std::atomic<bool> stop{stop_after == 0 && stop_batch == 0};
    std::int64_t done = directory.latest_checkpoint(DType::kF32)
                            ? directory.latest_checkpoint(DType::kF32)->state.epoch
                            : 0;
    BatchTrainerOptions options;
    options.scratch = "/";
    options.on_batch = [&](std::int64_t, std::int64_t batch, std::int64_t) {
      if (done == stop_after && batch == stop_batch) stop = true;
    };
    BatchTrainer trainer(*backend_, *io_, files, *dataset_, directory.config(), options);
    return run_training(directory, trainer, &stop, [&](const EpochRecord& record) {
      done = record.epoch;
      if (record.epoch == stop_after && stop_batch == 0) stop = true;
    });
  }

  // As if the process died after this batch of the epoch that follows `epoch`.
  void run_until_killed(bool resume, std::int64_t epoch, std::int64_t batch) {
    RunDirectory directory =
        resume ? RunDirectory::open(files, kRun) : RunDirectory::create(files, kRun, config, false);
    BatchTrainerOptions options;
    options.scratch = "/";
    options.on_batch = [&](std::int64_t at, std::int64_t done, std::int64_t) {
      if (at == epoch + 1 && done == batch) throw Killed{};
    };
    BatchTrainer trainer(*backend_, *io_, files, *dataset_, directory.config(), options);
    run_training(directory, trainer, nullptr, [](const EpochRecord&) {});
  }

  std::vector<nlohmann::json> scores() {
    std::vector<nlohmann::json> all;
    for (const nlohmann::json& line : lines()) all.push_back(line.at("metrics"));
    return all;
  }
};

void check_equal(Fixture& fixture, Fixture& whole) {
  CHECK(fixture.curve() == whole.curve());
  CHECK(fixture.scores() == whole.scores());
  const auto summary = nlohmann::json::parse(fixture.text("summary.json"));
  const auto reference = nlohmann::json::parse(whole.text("summary.json"));
  for (const char* key : {"best_valid", "best_epoch", "test", "last_test", "epochs", "metrics"}) {
    CHECK(summary.at(key) == reference.at(key));
  }
  for (const char* const name : {"/run/best.h5", "/run/checkpoint-12.h5"}) {
    const Checkpoint found = read_checkpoint(fixture.files, name, DType::kF32);
    const Checkpoint expected = read_checkpoint(whole.files, name, DType::kF32);
    CHECK(found.state.epoch == expected.state.epoch);
    REQUIRE(found.state.parameters.size() == expected.state.parameters.size());
    for (std::size_t i = 0; i < found.state.parameters.size(); ++i) {
      const ParameterValues &a = found.state.parameters[i], &b = expected.state.parameters[i];
      CHECK(a.value == b.value);
      CHECK(a.m == b.m);
      CHECK(a.v == b.v);
    }
  }
}

TEST_CASE("batch_resume: interrupted after any epoch or in its midst, it resumes to the same run") {
  Fixture whole;
  REQUIRE(whole.run(false).outcome == RunOutcome::kFinished);
  REQUIRE(whole.curve().size() == 12);
  for (std::int64_t stop_after = 0; stop_after < 12; ++stop_after) {
    for (const std::int64_t batch : {0, 3}) {
      if (stop_after > 1 && (stop_after + batch) % 2 == 0) continue;
      INFO("stopped after epoch " << stop_after << ", batch " << batch);
      Fixture fixture;
      const RunResult first = fixture.run(false, stop_after, batch);
      CHECK(first.outcome == RunOutcome::kInterrupted);
      CHECK(first.epochs == stop_after);
      CHECK(fixture.run(true).outcome == RunOutcome::kFinished);
      check_equal(fixture, whole);
      CHECK(fixture.run(true).outcome == RunOutcome::kFinishedBefore);
    }
  }
}

TEST_CASE("batch_resume: several times, and after a kill that left lines behind") {
  Fixture whole, fixture;
  whole.run(false);
  fixture.run(false, 2, 1);
  fixture.run(true, 4, 4);
  fixture.run(true, 7);
  fixture.files.remove_all("/run/checkpoint-7.h5");  // as after a kill: the newest is of epoch 5
  const std::string torn = fixture.text("metrics.jsonl") + "{\"epoch\": 8, \"lo";
  write_file_atomically(fixture.files, "/run/metrics.jsonl", std::as_bytes(std::span(torn)));
  CHECK(fixture.run(true).outcome == RunOutcome::kFinished);
  check_equal(fixture, whole);
}

std::vector<std::string> checkpoints(Fixture& fixture) {
  std::vector<std::string> names = fixture.files.list(kRun);
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("checkpoint-"); });
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE("batch_resume: killed inside an epoch, it goes on from the last checkpoint there") {
  Fixture whole, fixture;
  whole.run(false);
  CHECK_THROWS_AS(fixture.run_until_killed(false, 1, 4), Killed);
  CHECK(checkpoints(fixture) == std::vector<std::string>{"checkpoint-1-batch-4.h5"});
  const Checkpoint inside =
      read_checkpoint(fixture.files, "/run/checkpoint-1-batch-4.h5", DType::kF32);
  CHECK(inside.state.trained_to() == TrainedTo{1, 4});
  CHECK(inside.state.batch_losses.size() >= 2);
  // The third batch of it is done again, the first two aren't.
  CHECK_THROWS_AS(fixture.run_until_killed(true, 5, 3), Killed);
  CHECK(checkpoints(fixture) ==
        std::vector<std::string>{"checkpoint-5-batch-2.h5", "checkpoint-5.h5"});
  CHECK(fixture.run(true).outcome == RunOutcome::kFinished);
  CHECK(checkpoints(fixture) ==
        std::vector<std::string>{"checkpoint-10.h5", "checkpoint-12.h5", "checkpoint-5.h5"});
  check_equal(fixture, whole);
}

TEST_CASE("batch_resume: a checkpoint of more batches than an epoch has is refused") {
  Fixture fixture;
  CHECK_THROWS_AS(fixture.run_until_killed(false, 0, 4), Killed);
  const std::string path = "/run/checkpoint-0-batch-4.h5";
  Checkpoint checkpoint = read_checkpoint(fixture.files, path, DType::kF32);
  for (const std::int64_t batches : {std::int64_t{-1}, std::int64_t{1000}}) {
    checkpoint.state.batches = batches;
    BatchTrainerOptions options;
    options.scratch = "/";
    BatchTrainer trainer(*fixture.backend_, *fixture.io_, fixture.files, *fixture.dataset_,
                         fixture.config, options);
    CHECK_THROWS_WITH(
        trainer.restore(checkpoint, path),
        Catch::Matchers::Contains(path) && Catch::Matchers::Contains("batches of an"));
  }
}

TEST_CASE("batch_resume: a run that was never evaluated ends without scores") {
  Fixture fixture;
  fixture.config.sampling.eval_fanouts = {};
  fixture.config.eval_every = 10;
  fixture.run(false, 7, 2);
  RunDirectory directory = RunDirectory::open(fixture.files, kRun);
  RunConfig shorter = directory.config();
  shorter.epochs = 7;
  directory.set_config(shorter);
  const RunResult result = fixture.run(true);
  CHECK(result.outcome == RunOutcome::kFinished);
  CHECK(result.summary.at("test").is_null());
}

TEST_CASE("batch_resume: a run's configuration says how it samples") {
  Fixture fixture;
  fixture.config.sampling.replace = true;
  fixture.run(false, 1);
  const RunDirectory directory = RunDirectory::open(fixture.files, kRun);
  CHECK(directory.config().sampling == fixture.config.sampling);
}

}  // namespace
}  // namespace ooc
