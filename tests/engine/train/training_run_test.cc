#include "engine/train/training_run.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "storage/base/errors.h"
#include "storage/io/hdf5_file.h"
#include "tests/engine/run_fixture.h"

using namespace ooc;
using Catch::Matchers::Contains;
using test::FaultyFileSystem;
using test::MemoryFileSystem;
using Fixture = test::RunFixture;
using test::kRun;

TEST_CASE("training_run: interrupted after any epoch, it resumes to the same curve and summary") {
  Fixture whole;
  REQUIRE(whole.run(whole.files, false).outcome == RunOutcome::kFinished);
  const auto expected = whole.curve();
  REQUIRE(expected.size() == 12);
  for (std::int64_t stop_after = 0; stop_after < 12; ++stop_after) {
    Fixture fixture;
    INFO("stopped after epoch " << stop_after);
    const RunResult first = fixture.run(fixture.files, false, stop_after);
    CHECK(first.outcome == RunOutcome::kInterrupted);
    CHECK(first.epochs == stop_after);
    CHECK(fixture.run(fixture.files, true).outcome == RunOutcome::kFinished);
    CHECK(fixture.curve() == expected);
    auto summary = nlohmann::json::parse(fixture.text("summary.json"));
    auto reference = nlohmann::json::parse(whole.text("summary.json"));
    for (const char* key : {"best_valid", "best_epoch", "test", "last_test", "epochs"}) {
      CHECK(summary[key] == reference[key]);
    }
    const Checkpoint best = read_checkpoint(fixture.files, "/run/best.h5", DType::kF32);
    const Checkpoint expected_best = read_checkpoint(whole.files, "/run/best.h5", DType::kF32);
    CHECK(best.state.epoch == expected_best.state.epoch);
    for (std::size_t i = 0; i < best.state.parameters.size(); ++i) {
      CHECK(best.state.parameters[i].value == expected_best.state.parameters[i].value);
    }
  }
}

TEST_CASE("training_run: lines after the checkpoint and a torn last line are dropped on resume") {
  Fixture whole;
  whole.run(whole.files, false);
  Fixture fixture;
  fixture.run(fixture.files, false, 7);
  fixture.files.remove_all("/run/checkpoint-7.h5");  // as after a kill: the newest is of epoch 5
  const std::string torn = fixture.text("metrics.jsonl") + "{\"epoch\": 8, \"lo";
  write_file_atomically(fixture.files, "/run/metrics.jsonl", std::as_bytes(std::span(torn)));
  CHECK(fixture.run(fixture.files, true).outcome == RunOutcome::kFinished);
  CHECK(fixture.curve() == whole.curve());
}

TEST_CASE("training_run: lines of any length are kept on resume, what is behind them is not") {
  Fixture fixture;
  fixture.run(fixture.files, false, 5);
  std::string kept;
  for (nlohmann::json& line : fixture.lines()) {
    line["note"] = std::string(100'000, 'x');
    kept += line.dump() + "\n";
  }
  const std::string text = kept + std::string(200'000, '\0');
  write_file_atomically(fixture.files, "/run/metrics.jsonl", std::as_bytes(std::span(text)));
  CHECK(fixture.run(fixture.files, true).outcome == RunOutcome::kFinished);
  CHECK(fixture.text("metrics.jsonl").starts_with(kept));
  CHECK(fixture.lines().size() == 12);
}

TEST_CASE("training_run: a line without its numbers is damaged, and nothing is cut") {
  Fixture fixture;
  fixture.run(fixture.files, false, 5);
  std::string text;
  for (nlohmann::json& line : fixture.lines()) {
    if (line["epoch"] == 3) line.erase("bytes_read");
    text += line.dump() + "\n";
  }
  write_file_atomically(fixture.files, "/run/metrics.jsonl", std::as_bytes(std::span(text)));
  CHECK_THROWS_WITH(fixture.run(fixture.files, true), Contains("the line of epoch 3"));
  CHECK(fixture.text("metrics.jsonl") == text);
}

TEST_CASE("training_run: best.h5 is there whenever a run has finished") {
  Fixture fixture;
  fixture.run(fixture.files, false);
  fixture.files.remove_all("/run/best.h5");  // as after a kill at the very end
  fixture.files.remove_all("/run/summary.json");
  CHECK(fixture.run(fixture.files, true).outcome == RunOutcome::kFinished);
  const Checkpoint best = read_checkpoint(fixture.files, "/run/best.h5", DType::kF32);
  CHECK(best.state.epoch ==
        nlohmann::json::parse(fixture.text("summary.json")).at("best_epoch").get<std::int64_t>());
}

TEST_CASE("training_run: lines that are missing, and another dataset, are noticed on resume") {
  Fixture fixture;
  fixture.run(fixture.files, false, 7);
  const std::string text = fixture.text("metrics.jsonl");
  const std::size_t third = text.find("{\"epoch\":3"), fourth = text.find("{\"epoch\":4");
  const std::string gap = text.substr(0, third) + text.substr(fourth);
  write_file_atomically(fixture.files, "/run/metrics.jsonl", std::as_bytes(std::span(gap)));
  CHECK_THROWS_WITH(fixture.run(fixture.files, true),
                    Contains("the line of epoch 3 is missing or damaged, /run/metrics.jsonl"));
  write_file_atomically(fixture.files, "/run/metrics.jsonl", std::as_bytes(std::span(text)));
  test::TinyDataset other;
  other.vertices = 120;
  other.edges = test::random_edges(120, 500, 9);
  fixture.dataset_ = std::make_unique<Dataset>(test::write_tiny_dataset(fixture.files, other));
  CHECK_THROWS_WITH(fixture.run(fixture.files, true), Contains("trained on another dataset"));
}

TEST_CASE("training_run: a finished run says so and stays as it is") {
  Fixture fixture;
  fixture.run(fixture.files, false);
  const std::string before = fixture.text("metrics.jsonl");
  const RunResult again = fixture.run(fixture.files, true);
  CHECK(again.outcome == RunOutcome::kFinishedBefore);
  CHECK(again.summary.at("epochs") == 12);
  CHECK(fixture.text("metrics.jsonl") == before);
  // More epochs than before: it goes on.
  RunDirectory directory = RunDirectory::open(fixture.files, kRun);
  RunConfig longer = directory.config();
  longer.epochs = 15;
  directory.set_config(longer);
  CHECK(fixture.run(fixture.files, true).epochs == 15);
  CHECK(fixture.curve().size() == 15);
}

TEST_CASE("training_run: patience ends it after that many evaluations without a better one") {
  Fixture fixture;
  fixture.config.epochs = 500;
  fixture.config.patience = 4;
  const RunResult result = fixture.run(fixture.files, false);
  CHECK(result.outcome == RunOutcome::kFinished);
  CHECK(result.epochs < 500);
  CHECK(result.epochs == result.summary.at("best_epoch").get<std::int64_t>() + 4);
}

TEST_CASE("training_run: an existing directory needs force, and force keeps it until the end") {
  Fixture fixture;
  fixture.run(fixture.files, false);
  CHECK_THROWS_WITH(fixture.run(fixture.files, false),
                    Contains("run directory exists, /run; continue it with --resume /run"));
  CHECK(fixture.run(fixture.files, false, 2, true).outcome == RunOutcome::kInterrupted);
  CHECK(fixture.files.exists("/run.replaced/summary.json"));
  CHECK(fixture.run(fixture.files, true).outcome == RunOutcome::kFinished);
  CHECK_FALSE(fixture.files.exists("/run.replaced"));
  // Two forced runs that don't finish: the finished one is kept all the same.
  const std::string kept = fixture.text("metrics.jsonl");
  fixture.run(fixture.files, false, 2, true);
  fixture.run(fixture.files, false, 3, true);
  const auto aside = read_file(fixture.files, "/run.replaced/metrics.jsonl");
  CHECK(std::string(reinterpret_cast<const char*>(aside.data()), aside.size()) == kept);
  CHECK(fixture.run(fixture.files, true).outcome == RunOutcome::kFinished);
  CHECK_FALSE(fixture.files.exists("/run.replaced"));
  // A directory of that name which isn't ours stays.
  fixture.files.create_directories("/run.replaced/precious");
  CHECK_THROWS_WITH(fixture.run(fixture.files, false, 2, true),
                    Contains("the name for the replaced run is taken"));
  CHECK(fixture.files.exists("/run.replaced/precious"));
  // What a start leaves that was cut off at once is no run.
  fixture.files.create_directories("/empty");
  CHECK_NOTHROW(RunDirectory::create(fixture.files, "/empty", fixture.config, false));
  fixture.files.create_directories("/own");
  write_file_atomically(fixture.files, "/own/program.saga", std::as_bytes(std::span("mine")));
  CHECK_THROWS_AS(RunDirectory::create(fixture.files, "/own", fixture.config, false), UsageError);
  fixture.files.create_directories("/named/program.saga");
  CHECK_THROWS_AS(RunDirectory::create(fixture.files, "/named", fixture.config, false), UsageError);
  // Nor is what a forced start leaves, whatever program it was to run.
  write_file_atomically(fixture.files, "/own/.replaces", {});
  CHECK_NOTHROW(RunDirectory::create(fixture.files, "/own", fixture.config, true));
  fixture.files.create_directories("/other/precious");
  CHECK_THROWS_AS(RunDirectory::create(fixture.files, "/other", fixture.config, true), UsageError);
  CHECK_THROWS_WITH(RunDirectory::open(fixture.files, "/other"), Contains("not a run directory"));
}

TEST_CASE("training_run: a directory of the replaced run's name that no force made stays") {
  Fixture fixture;
  fixture.files.create_directories("/run.replaced/precious");
  CHECK(fixture.run(fixture.files, false).outcome == RunOutcome::kFinished);
  CHECK(fixture.files.exists("/run.replaced/precious"));
}

TEST_CASE("training_run: a run made longer has no result until it has a new one") {
  Fixture fixture;
  fixture.run(fixture.files, false);
  const std::string old = fixture.text("summary.json");
  RunConfig longer = fixture.config;
  longer.epochs = 16;
  RunDirectory::open(fixture.files, kRun).set_config(longer);
  CHECK_FALSE(fixture.files.exists("/run/summary.json"));
  CHECK(fixture.run(fixture.files, true, 14).outcome == RunOutcome::kInterrupted);
  // What a summary of another epoch says is out of date.
  write_file_atomically(fixture.files, "/run/summary.json", std::as_bytes(std::span(old)));
  longer.epochs = 14;
  RunDirectory::open(fixture.files, kRun).set_config(longer);
  write_file_atomically(fixture.files, "/run/summary.json", std::as_bytes(std::span(old)));
  CHECK(fixture.run(fixture.files, true).outcome == RunOutcome::kFinished);
  CHECK(nlohmann::json::parse(fixture.text("summary.json")).at("epochs") == 14);
}

TEST_CASE("training_run: one process at a time trains a run") {
  Fixture fixture;
  fixture.run(fixture.files, false);
  {
    const RunLock lock(fixture.files, kRun);
    CHECK_THROWS_WITH(RunLock(fixture.files, kRun),
                      Contains("another process is training this run, /run; wait for it"));
    CHECK_THROWS_AS(fixture.run(fixture.files, false, 2, true), UsageError);
    CHECK(fixture.files.exists("/run/summary.json"));
  }
  CHECK_FALSE(fixture.files.exists("/run/.lock"));
  CHECK_NOTHROW(fixture.run(fixture.files, false, 2, true));
}

TEST_CASE("training_run: a failing write ends it with an error and the last checkpoint intact") {
  Fixture counting;
  FaultyFileSystem counted(counting.files);
  counting.run(counted, false);
  const std::int64_t writes = counted.counts.writes;
  REQUIRE(writes > 15);
  for (std::int64_t n = 1; n <= writes; ++n) {
    Fixture fixture;
    FaultyFileSystem faulty(fixture.files);
    faulty.faults.first_failing_write = n;
    faulty.faults.torn_write = true;
    INFO("write " << n);
    CHECK_THROWS_AS(fixture.run(faulty, false), IoError);
    const bool begun =
        fixture.files.exists("/run/config.toml");  // otherwise the same command again
    CHECK(fixture.run(fixture.files, begun).outcome == RunOutcome::kFinished);
    CHECK(fixture.curve() == counting.curve());
    CHECK(fixture.files.exists("/run/best.h5"));
  }
}

TEST_CASE("training_run: the configuration survives its file") {
  RunConfig config;
  config.dataset = "a \"quoted\" path.ooc";
  config.model.norm = Norm::kLayer;
  config.model.residual = true;
  config.model.dropout = 0.1;
  config.lr = 3e-4;
  config.weight_decay = 1;
  config.seed = 7;
  config.verify = VerifyPolicy::kAlways;
  CHECK(run_config_from_toml(to_toml(config), "x") == config);
  CHECK_THROWS_WITH(run_config_from_toml(to_toml(config) + "colour = 1\n", "config.toml"),
                    Contains("colour is missing, unknown or has a wrong value, config.toml"));
  CHECK_THROWS_AS(run_config_from_toml("layers = ", "x"), DataError);
  config.eval_every = 0;
  CHECK_THROWS_WITH(run_config_from_toml(to_toml(config), "x"), Contains("eval-every"));
}

TEST_CASE("checkpoint: a damaged or foreign file is refused by name") {
  Fixture fixture;
  fixture.run(fixture.files, false);
  const std::string path = "/run/checkpoint-12.h5";
  CHECK(read_checkpoint(fixture.files, path, DType::kF32).state.epoch == 12);
  std::vector<std::byte> bytes = read_file(fixture.files, path);
  bytes.resize(bytes.size() / 3);
  write_file_atomically(fixture.files, path, bytes);
  CHECK_THROWS_WITH(read_checkpoint(fixture.files, path, DType::kF32), Contains(path));
  Hdf5Writer other;
  other.write_attribute("format", std::string("something else"));
  write_file_atomically(fixture.files, path, other.bytes());
  CHECK_THROWS_WITH(read_checkpoint(fixture.files, path, DType::kF32),
                    Contains("not a checkpoint"));
  CHECK_THROWS_AS(read_checkpoint(fixture.files, "/none.h5", DType::kF32), DataError);
}
