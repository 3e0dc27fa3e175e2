// What is trained and how: tasks, metrics, class weights, optimisers, schedules, several seeds.
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>

#include "engine/infer/inference.h"
#include "engine/model/parts/task.h"
#include "engine/model/parts/words.h"
#include "engine/train/seed_runs.h"
#include "kernels/device/cpu_backend.h"
#include "storage/base/errors.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/tiny_dataset.h"

using namespace ooc;
using Catch::Matchers::Contains;
using test::MemoryFileSystem;
using test::TinyDataset;

namespace {

constexpr std::int64_t kVertices = 157;

TinyDataset graph_of(Task task) {
  TinyDataset spec;
  spec.vertices = kVertices;
  spec.feature_cols = 12;
  spec.permute = true;
  spec.classes = task == Task::kBinary ? 2 : 4;
  spec.multi_label = task == Task::kMultiLabel;
  spec.edges = test::random_edges(spec.vertices, 500, 8);
  return spec;
}

RunConfig config_of(Task task) {
  RunConfig config;
  config.dataset = "/tiny.ooc";
  config.model.hidden = 12;
  config.model.task = task;
  config.metric = default_metric(task);
  config.epochs = 12;
  config.checkpoint_every = 5;
  return config;
}

// A dataset of the task, in memory.
struct Fixture {
  explicit Fixture(Task task)
      : spec(graph_of(task)),
        config(config_of(task)),
        backend(make_cpu_backend()),
        io(std::make_unique<test::MemoryBlockIo>(files)),
        dataset(std::make_unique<Dataset>(test::write_tiny_dataset(files, spec))) {}

  // The parameters after an epoch, by name.
  std::map<std::string, std::vector<float>> after_epochs(std::int64_t epochs) {
    Trainer trainer(*backend, *io, *dataset, config);
    for (std::int64_t e = 0; e < epochs; ++e) last = trainer.run_epoch(nullptr).value();
    std::map<std::string, std::vector<float>> parameters;
    for (const ParameterValues& p : trainer.state().parameters) {
      const auto* values = reinterpret_cast<const float*>(p.value.data());
      parameters[p.name].assign(values, values + p.rows * p.cols);
    }
    return parameters;
  }

  RunResult run(bool resume, std::int64_t stop_after = -1) {
    RunDirectory directory = resume ? RunDirectory::open(files, "/run")
                                    : RunDirectory::create(files, "/run", config, false);
    std::atomic<bool> stop{stop_after == 0};
    std::int64_t epochs = 0;
    const auto train = [&](RunDirectory& run) {
      Trainer trainer(*backend, *io, *dataset, run.config());
      return run_training(run, trainer, &stop, [&](const EpochRecord&) {
        if (++epochs == stop_after) stop = true;
      });
    };
    return config.runs > 1 ? run_seeds(files, directory, train) : train(directory);
  }

  std::vector<nlohmann::json> lines(const std::string& run = "/run") {
    const auto bytes = read_file(files, run + "/metrics.jsonl");
    std::istringstream in(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    std::vector<nlohmann::json> result;
    for (std::string line; std::getline(in, line);) result.push_back(nlohmann::json::parse(line));
    return result;
  }

  MemoryFileSystem files;
  TinyDataset spec;
  RunConfig config;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<BlockIo> io;
  std::unique_ptr<Dataset> dataset;
  EpochRecord last;
};

// fp32 rows of an .npy file with a header of 128 bytes.
std::vector<float> rows_of(MemoryFileSystem& files, const std::string& path) {
  const auto bytes = read_file(files, path);
  const auto* values = reinterpret_cast<const float*>(bytes.data() + 128);
  return {values, values + (bytes.size() - 128) / sizeof(float)};
}

constexpr std::uint8_t kSplitOf[] = {1, 2, 1, 3, 0};  // of tiny datasets, by original id modulo 5

}  // namespace

TEST_CASE("tasks: each learns, and its losses are those of the logits it gives") {
  for (const Task task : {Task::kSingle, Task::kMultiLabel, Task::kBinary}) {
    INFO("task " << word_of(kTasks, task));
    Fixture fixture(task);
    fixture.config.epochs = 60;
    fixture.run(false);
    const auto lines = fixture.lines();
    CHECK(lines.back().at("loss") < 0.9 * lines.front().at("loss").get<double>());
    const Checkpoint last = read_checkpoint(fixture.files, "/run/checkpoint-60.h5", DType::kF32);
    const InferenceResult result =
        run_inference(fixture.files, *fixture.backend, *fixture.io, *fixture.dataset, last,
                      {.path = "/logits.npy"}, nullptr);
    CHECK(result.scores.valid == lines.back().at("valid").get<double>());
    const std::vector<float> logits = rows_of(fixture.files, "/logits.npy");
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
    Fixture fixture(task);
    fixture.run(false);
    const Checkpoint best = read_checkpoint(fixture.files, "/run/best.h5", DType::kF32);
    for (const auto& [output, path] :
         {std::pair(Output::kLogits, "/logits.npy"), {Output::kClasses, "/classes.npy"}}) {
      run_inference(fixture.files, *fixture.backend, *fixture.io, *fixture.dataset, best,
                    {output, path}, nullptr);
    }
    const std::vector<float> logits = rows_of(fixture.files, "/logits.npy");
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
  Fixture single(Task::kSingle), many(Task::kMultiLabel);
  const auto refusal = [](Fixture& fixture, const auto& change) {
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
  CHECK_THAT(refusal(single, [](auto& c) { c.metric = Metric::kRocAuc; }),
             Contains("--metric rocauc does not fit --task single with 4 classes"));
  CHECK_THAT(refusal(many, [](auto& c) { c.model.class_weights = ClassWeights::kBalanced; }),
             Contains("--class-weights balanced does not fit --task multi-label"));
  CHECK_THAT(refusal(single, [](auto& c) { c.momentum = 0.9; }),
             Contains("--momentum 0.9, --optimizer adam"));
  CHECK(refusal(single, [](auto& c) { c.metric = Metric::kMacroF1; }).empty());
}

TEST_CASE("tasks: balanced classes weigh the same, in the loss and the parameters kept for it") {
  Fixture fixture(Task::kSingle);
  std::vector<double> counts(4), expected;
  double vertices = 0;
  for (std::int64_t v = 0; v < kVertices; ++v) {
    if (kSplitOf[v % 5] != 1) continue;
    ++counts[static_cast<std::size_t>(test::tiny_label(fixture.spec, v))];
    ++vertices;
  }
  for (const double count : counts) expected.push_back(vertices / (4 * count));
  const std::vector<double> weights = balanced_weights(*fixture.dataset);
  REQUIRE(weights.size() == 4);
  for (std::size_t c = 0; c < 4; ++c) CHECK(weights[c] == Approx(expected[c]));
  CHECK(*std::max_element(weights.begin(), weights.end()) > 1.01);
  fixture.config.model.class_weights = ClassWeights::kBalanced;
  fixture.config.model.dropout = 0;
  const auto parameters = fixture.after_epochs(3);
  for (std::size_t c = 0; c < 4; ++c) {
    CHECK(parameters.at(kClassWeightsParameter)[c] == Approx(expected[c]));
  }
  // The loss of zero logits is log 4 for every vertex, whatever it weighs.
  fixture.config.lr = 0;
  fixture.config.model.layers = 1;
  fixture.after_epochs(1);
  const double weighted = fixture.last.loss;
  fixture.config.model.class_weights = ClassWeights::kNone;
  fixture.after_epochs(1);
  CHECK(weighted == Approx(fixture.last.loss).epsilon(0.05));
  CHECK(weighted != fixture.last.loss);
}

TEST_CASE("optimisers: a step of each is PyTorch's") {
  Fixture fixture(Task::kSingle);
  fixture.config.model.dropout = 0;
  fixture.config.lr = 0;
  const std::vector<float> start = fixture.after_epochs(1).at("layer1.weight");
  const auto moved = [&](OptimizerKind kind, double lr, double weight_decay, double momentum = 0) {
    fixture.config.optimizer = kind;
    fixture.config.lr = lr;
    fixture.config.weight_decay = weight_decay;
    fixture.config.momentum = momentum;
    std::vector<float> change = fixture.after_epochs(1).at("layer1.weight");
    for (std::size_t i = 0; i < change.size(); ++i) change[i] -= start[i];
    return change;
  };
  // SGD moves by the gradient, momentum has no past yet.
  const std::vector<float> by_gradient = moved(OptimizerKind::kSgd, 1, 0);
  const std::vector<float> with_momentum = moved(OptimizerKind::kSgd, 1, 0, 0.9);
  const std::vector<float> half = moved(OptimizerKind::kSgd, 0.5, 0);
  // Adam's first step is lr, whatever the gradient; AdamW decays apart from it.
  const std::vector<float> adam = moved(OptimizerKind::kAdam, 0.01, 0);
  const std::vector<float> adamw = moved(OptimizerKind::kAdamW, 0.01, 0.5);
  for (std::size_t i = 0; i < start.size(); ++i) {
    CHECK(with_momentum[i] == by_gradient[i]);
    CHECK(half[i] == Approx(by_gradient[i] / 2).margin(1e-6));
    if (std::abs(by_gradient[i]) < 1e-4) continue;
    CHECK(adam[i] == Approx(by_gradient[i] > 0 ? 0.01 : -0.01).epsilon(1e-3));
    CHECK(adamw[i] == Approx(adam[i] - 0.01 * 0.5 * start[i]).epsilon(1e-3));
  }
}

TEST_CASE("schedules: the rate of every epoch, also in the metrics") {
  RunConfig config;
  config.lr = 0.5;
  config.epochs = 9;
  config.lr_schedule = LrSchedule::kStep;
  for (std::int64_t epoch = 1; epoch <= 9; ++epoch) {
    const double expected = epoch <= 5 ? 0.5 : epoch <= 7 ? 0.05 : 0.005;
    CHECK(learning_rate(config, epoch) == Approx(expected));
  }
  config.lr_schedule = LrSchedule::kCosine;
  CHECK(learning_rate(config, 1) == 0.5);
  CHECK(learning_rate(config, 3) == Approx(0.25 * (1 + std::cos(std::numbers::pi / 4))));
  CHECK(learning_rate(config, 5) == Approx(0.25));
  CHECK(learning_rate(config, 9) == 0);
  config.epochs = 1;
  CHECK(learning_rate(config, 1) == 0.5);
  Fixture fixture(Task::kSingle);
  fixture.config.lr_schedule = LrSchedule::kCosine;
  fixture.config.model.dropout = 0;
  fixture.run(false);
  const auto lines = fixture.lines();
  for (std::int64_t epoch = 1; epoch <= 12; ++epoch) {
    CHECK(lines[static_cast<std::size_t>(epoch - 1)].at("lr") ==
          learning_rate(fixture.config, epoch));
  }
  // The last epoch has rate 0: it is evaluated with the parameters of the one before.
  CHECK(lines[11].at("valid_loss") == lines[10].at("valid_loss"));
  CHECK(lines[10].at("valid_loss") != lines[9].at("valid_loss"));
}

TEST_CASE("tasks: interrupted and resumed, every optimiser and metric gives the same run") {
  const auto curve = [](Fixture& fixture) {
    std::vector<nlohmann::json> values;
    for (const auto& line : fixture.lines()) {
      values.push_back({line.at("loss"), line.at("lr"), line.at("train"), line.at("valid"),
                        line.at("test"), line.at("valid_loss")});
    }
    return values;
  };
  const auto check = [&](Task task, const auto& change) {
    Fixture whole(task);
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
    CHECK(expected.summary.at("metric") == word_of(kMetrics, whole.config.metric));
    for (const std::int64_t stop_after : {3, 8}) {
      Fixture fixture(task);
      change(fixture.config);
      CHECK(fixture.run(false, stop_after).outcome == RunOutcome::kInterrupted);
      CHECK(fixture.run(true).outcome == RunOutcome::kFinished);
      CHECK(curve(fixture) == curve(whole));
    }
  };
  check(Task::kMultiLabel, [](RunConfig& c) {
    c.metric = Metric::kAveragePrecision;
    c.optimizer = OptimizerKind::kAdamW;
    c.weight_decay = 0.1;
    c.lr_schedule = LrSchedule::kCosine;
  });
  check(Task::kSingle, [](RunConfig& c) {
    c.metric = Metric::kMacroF1;
    c.model.class_weights = ClassWeights::kBalanced;
    c.optimizer = OptimizerKind::kSgd;
    c.momentum = 0.9;
    c.lr = 0.1;
    c.lr_schedule = LrSchedule::kStep;
  });
  check(Task::kBinary, [](RunConfig&) {});
}

TEST_CASE("run_config: what files of older versions lack has its default") {
  RunConfig config = config_of(Task::kMultiLabel);
  config.model.class_weights = ClassWeights::kBalanced;
  config.optimizer = OptimizerKind::kSgd;
  config.momentum = 0.5;
  config.lr_schedule = LrSchedule::kStep;
  config.metric = Metric::kMacroF1;
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
  Fixture whole(Task::kSingle);
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
    Fixture alone(Task::kSingle);
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
    Fixture fixture(Task::kSingle);
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
