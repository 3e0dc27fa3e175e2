// What is trained and how: tasks, metrics, runs and their resumption, several seeds.
#include <catch2/catch.hpp>
#include <cmath>

#include "storage/base/errors.h"
#include "tests/engine/train/task_fixture.h"

using namespace ooc;
using Catch::Matchers::Contains;
using test::kSplitOf;
using test::kVertices;
using test::TaskFixture;

TEST_CASE("tasks: each learns, and its losses are those of the logits it gives") {
  for (const Task task : {Task::kSingle, Task::kMultiLabel, Task::kBinary}) {
    INFO("task " << word_of(kTasks, task));
    TaskFixture fixture(task);
    fixture.config.epochs = 60;
    fixture.run(false);
    const auto lines = fixture.lines();
    CHECK(lines.back().at("loss") < 0.9 * lines.front().at("loss").get<double>());
    const Checkpoint last = read_checkpoint(fixture.files, "/run/checkpoint-60.h5", DType::kF32);
    const InferenceResult result =
        run_inference(fixture.files, *fixture.backend, *fixture.io, *fixture.dataset, last,
                      {.path = "/logits.npy"}, nullptr);
    CHECK(result.scores.front().valid == lines.back().at("valid").get<double>());
    const std::vector<float> logits = test::rows_of(fixture.files, "/logits.npy");
    const auto cols = static_cast<std::size_t>(logit_cols(task, fixture.spec.classes));
    REQUIRE(logits.size() == static_cast<std::size_t>(kVertices) * cols);
    double loss = 0, vertices = 0;
    for (std::int64_t v = 0; v < kVertices; ++v) {
      if (kSplitOf[v % 5] != 2) continue;
      const float* row = logits.data() + static_cast<std::size_t>(v) * cols;
      const std::int64_t label = test::tiny_label(fixture.spec, v);
      ++vertices;
      if (task == Task::kSingle) {
        double sum = 0;
        for (std::size_t c = 0; c < cols; ++c) sum += std::exp(double{row[c]});
        loss += std::log(sum) - row[label];
        continue;
      }
      for (std::size_t c = 0; c < cols; ++c) {
        const bool bit = task == Task::kBinary
                             ? label == 1
                             : test::tiny_bit(fixture.spec, v, static_cast<std::int64_t>(c));
        const double p = 1 / (1 + std::exp(double{-row[c]}));
        loss -= std::log(bit ? p : 1 - p) / static_cast<double>(cols);
      }
    }
    CHECK(lines.back().at("valid_loss").get<double>() == Approx(loss / vertices).epsilon(1e-4));
  }
}

TEST_CASE("tasks: classes of a multi-label model are bits, of a binary one 0 and 1") {
  for (const Task task : {Task::kMultiLabel, Task::kBinary}) {
    TaskFixture fixture(task);
    fixture.run(false);
    const Checkpoint best = read_checkpoint(fixture.files, "/run/best.h5", DType::kF32);
    for (const auto& [output, path] :
         {std::pair(Output::kLogits, "/logits.npy"), {Output::kClasses, "/classes.npy"}}) {
      run_inference(fixture.files, *fixture.backend, *fixture.io, *fixture.dataset, best,
                    {output, path}, nullptr);
    }
    const std::vector<float> logits = test::rows_of(fixture.files, "/logits.npy");
    const auto bytes = read_file(fixture.files, "/classes.npy");
    const bool many = task == Task::kMultiLabel;
    REQUIRE(bytes.size() == 128 + logits.size() * (many ? 1 : sizeof(std::int64_t)));
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const auto* classes = reinterpret_cast<const std::int64_t*>(bytes.data() + 128);
      const auto found = many ? std::to_integer<std::int64_t>(bytes[128 + i]) : classes[i];
      REQUIRE(found == (logits[i] > 0 ? 1 : 0));
    }
  }
}

TEST_CASE("tasks: what does not fit is refused by both names") {
  TaskFixture single(Task::kSingle), many(Task::kMultiLabel);
  const auto refusal = [](TaskFixture& fixture, const auto& change) {
    RunConfig config = fixture.config;
    change(config);
    try {
      const Trainer trainer(*fixture.backend, *fixture.io, *fixture.dataset, config);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refusal(single, [](auto& c) { c.model.task = Task::kMultiLabel; }),
             Contains("--task multi-label does not fit single-label labels of 4 classes, "
                      "/tiny.ooc; leave it out, it is single then"));
  CHECK_THAT(refusal(single, [](auto& c) { c.model.task = Task::kBinary; }),
             Contains("--task binary does not fit single-label labels of 4 classes"));
  CHECK_THAT(refusal(many, [](auto& c) { c.model.task = Task::kSingle; }),
             Contains("--task single does not fit multi-label labels"));
  CHECK_THAT(refusal(single, [](auto& c) { c.metrics = {Metric::kRocAuc}; }),
             Contains("--metric rocauc does not fit --task single with 4 classes"));
  CHECK_THAT(refusal(many,
                     [](auto& c) {
                       c.model.class_weights = {ClassWeights::Kind::kGiven, {1, 2, 3}};
                     }),
             Contains("3 weights of classes, 4 are needed, --task multi-label with 4 "
                      "classes; give one a class"));
  CHECK_THAT(refusal(single, [](auto& c) { c.model.loss = Loss::kHuber; }),
             Contains("--loss huber does not fit --task single"));
  CHECK_THAT(refusal(single, [](auto& c) { c.momentum = 0.9; }),
             Contains("--momentum 0.9, --optimizer adam"));
  CHECK(refusal(single, [](auto& c) { c.metrics = {Metric::kMacroF1}; }).empty());
}

TEST_CASE("tasks: interrupted and resumed, every optimiser and metric gives the same run") {
  const auto curve = [](TaskFixture& fixture) {
    std::vector<nlohmann::json> values;
    for (const auto& line : fixture.lines()) {
      values.push_back({line.at("loss"), line.at("lr"), line.at("train"), line.at("valid"),
                        line.at("test"), line.at("valid_loss")});
    }
    return values;
  };
  const auto check = [&](Task task, const auto& change) {
    TaskFixture whole(task);
    change(whole.config);
    const RunResult expected = whole.run(false);
    std::size_t best = 0;
    const auto lines = whole.lines();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].at("valid") > lines[best].at("valid")) best = i;
    }
    CHECK(expected.summary.at("best_epoch") == best + 1);
    CHECK(expected.summary.at("best_valid") == lines[best].at("valid"));
    CHECK(lines[1].at("bytes_read") == expected.summary.at("plan_predicted_bytes"));
    CHECK(expected.summary.at("metric") == word_of(kMetrics, whole.config.metrics.front()));
    for (const std::int64_t stop_after : {3, 8}) {
      TaskFixture fixture(task);
      change(fixture.config);
      CHECK(fixture.run(false, stop_after).outcome == RunOutcome::kInterrupted);
      CHECK(fixture.run(true).outcome == RunOutcome::kFinished);
      CHECK(curve(fixture) == curve(whole));
    }
  };
  check(Task::kMultiLabel, [](RunConfig& c) {
    c.metrics = {Metric::kAveragePrecision};
    c.optimizer = OptimizerKind::kAdamW;
    c.weight_decay = 0.1;
    c.lr_schedule = LrSchedule::kCosine;
  });
  check(Task::kSingle, [](RunConfig& c) {
    c.metrics = {Metric::kMacroF1};
    c.model.class_weights = kBalancedWeights;
    c.optimizer = OptimizerKind::kSgd;
    c.momentum = 0.9;
    c.lr = 0.1;
    c.lr_schedule = LrSchedule::kStep;
  });
  check(Task::kBinary, [](RunConfig&) {});
  check(Task::kRegression, [](RunConfig& c) {
    c.metrics = {Metric::kR2, Metric::kRmse};
    c.model.loss = Loss::kHuber;
  });
}

TEST_CASE("run_config: what files of older versions lack has its default") {
  RunConfig config = test::config_of(Task::kMultiLabel);
  config.model.class_weights = {ClassWeights::Kind::kGiven, {1, 0.1, 3}};
  config.optimizer = OptimizerKind::kSgd;
  config.momentum = 0.5;
  config.lr_schedule = LrSchedule::kStep;
  config.metrics = {Metric::kMacroF1, Metric::kAccuracy};
  config.runs = 3;
  CHECK(run_config_from_toml(to_toml(config), "x") == config);
  std::istringstream lines(to_toml(RunConfig{}));
  std::string older;
  for (std::string line; std::getline(lines, line);) {
    const std::string key = line.substr(0, line.find(' '));
    if (key == "task" || key == "metric" || key == "momentum" || key == "runs") continue;
    older += line + "\n";
  }
  CHECK(run_config_from_toml(older, "x") == RunConfig{});
  CHECK_THROWS_WITH(run_config_from_toml(to_toml(config) + "lr = 1", "x"), Contains("x"));
  CHECK_THROWS_WITH(run_config_from_toml("epochs = 3\n", "x"), Contains("dataset is missing"));
}

TEST_CASE("seed_runs: one run a seed, stopped anywhere and continued, and their mean") {
  TaskFixture whole(Task::kSingle);
  whole.config.epochs = 4;
  whole.config.seed = 5;
  whole.config.runs = 3;
  const RunResult result = whole.run(false);
  CHECK(result.outcome == RunOutcome::kFinished);
  CHECK(result.summary ==
        nlohmann::ordered_json::parse(std::string(
            reinterpret_cast<const char*>(read_file(whole.files, "/run/summary.json").data()),
            read_file(whole.files, "/run/summary.json").size())));
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto& run = result.summary.at("seeds").at(static_cast<std::size_t>(i));
    CHECK(run.at("seed") == 5 + i);
    TaskFixture alone(Task::kSingle);
    alone.config.epochs = 4;
    alone.config.seed = 5 + i;
    CHECK(alone.run(false).summary.at("test") == run.at("test"));
    sum += run.at("test").get<double>();
    squares += std::pow(run.at("test").get<double>(), 2);
  }
  CHECK(result.summary.at("test").get<double>() == Approx(sum / 3));
  CHECK(result.summary.at("test_deviation").get<double>() ==
        Approx(std::sqrt((squares - sum * sum / 3) / 2)).margin(1e-9));
  CHECK(whole.run(true).outcome == RunOutcome::kFinishedBefore);
  for (const std::int64_t stop_after : {0, 2, 4, 7, 11}) {
    INFO("stopped after " << stop_after << " epochs in all");
    TaskFixture fixture(Task::kSingle);
    fixture.config = whole.config;
    CHECK(fixture.run(false, stop_after).outcome == RunOutcome::kInterrupted);
    CHECK_FALSE(fixture.files.exists("/run/summary.json"));
    const RunResult resumed = fixture.run(true);
    for (const char* key : {"best_valid", "best_valid_deviation", "test", "test_deviation"}) {
      CHECK(resumed.summary.at(key) == result.summary.at(key));
    }
    CHECK(epochs_done(fixture.files, RunDirectory::open(fixture.files, "/run")) == 4);
  }
}
