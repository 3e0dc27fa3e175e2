// Tasks, losses, weights and metrics of sampled training, beside those of the whole graph.
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/model/parts/words.h"
#include "engine/train/trainer.h"
#include "tests/engine/minibatch/batch_world.h"
#include "tests/engine/train/task_fixture.h"

namespace ooc {
namespace {

using test::BatchWorld;
using test::TinyDataset;

struct Case {
  std::string name;
  TinyDataset spec;
  RunConfig config;
};

Case case_of(Task task, std::string name, std::vector<Metric> metrics) {
  Case made{std::move(name), test::graph_of(task), test::config_of(task)};
  made.config.metrics = std::move(metrics);
  made.config.sampling.fanouts.hops = {-1, -1};
  made.config.model.dropout = 0.3;
  made.config.epochs = 6;
  return made;
}

std::vector<Case> all_cases() {
  using enum Metric;
  std::vector<Case> cases;
  cases.push_back(case_of(Task::kSingle, "single", {kAccuracy, kMicroF1, kMacroF1}));
  cases.push_back(case_of(Task::kSingle, "single, balanced", {kMacroF1, kAccuracy}));
  cases.back().config.model.class_weights = kBalancedWeights;
  cases.push_back(case_of(Task::kSingle, "single, weighed", {kMacroF1}));
  cases.back().config.model.class_weights = {ClassWeights::Kind::kGiven, {1, 0.5, 3, 0}};
  cases.push_back(
      case_of(Task::kMultiLabel, "multi-label", {kMicroF1, kMacroF1, kRocAuc, kAveragePrecision}));
  cases.push_back(case_of(Task::kMultiLabel, "multi-label, weighed", {kRocAuc, kAccuracy}));
  cases.back().config.model.class_weights = {ClassWeights::Kind::kGiven, {1, 2, 0.25, 4}};
  cases.push_back(case_of(Task::kBinary, "binary", {kAccuracy, kRocAuc, kAveragePrecision}));
  cases.push_back(case_of(Task::kBinary, "binary, weighed", {kRocAuc, kMicroF1, kMacroF1}));
  cases.back().config.model.class_weights = kBalancedWeights;
  cases.push_back(case_of(Task::kRegression, "regression", {kMae, kRmse, kR2}));
  for (const Loss loss : {Loss::kAbsolute, Loss::kHuber}) {
    cases.push_back(case_of(Task::kRegression, "regression by " + word_of(kLosses, loss), {kMae}));
    cases.back().config.model.loss = loss;
  }
  return cases;
}

void check_scores(const EpochRecord& found, const EpochRecord& expected) {
  CHECK(found.valid_loss == Approx(expected.valid_loss).epsilon(1e-9));
  REQUIRE(found.scores.size() == expected.scores.size());
  for (std::size_t i = 0; i < found.scores.size(); ++i) {
    INFO("metric " << i);
    CHECK(std::isfinite(expected.scores[i].valid));
    CHECK(found.scores[i].valid == Approx(expected.scores[i].valid).epsilon(1e-9));
    CHECK(found.scores[i].test == Approx(expected.scores[i].test).epsilon(1e-9));
  }
}

// In double.
struct Pair {
  explicit Pair(const Case& at) : world(at.spec), config(at.config) {
    options = world.options();
    options.real = DType::kF64;
  }
  BatchTrainer batches() { return world.trainer(config, options); }
  Trainer whole(double lr) {
    RunConfig full = config;
    full.sampling = {};
    full.lr = lr;
    TrainerOptions full_options;
    full_options.real = DType::kF64;
    return {*world.backend, world.io, world.dataset, full, full_options};
  }

  BatchWorld world;
  RunConfig config;
  BatchTrainerOptions options;
};

TEST_CASE("batch_tasks: one batch with all in-edges is the whole graph's step, of every task") {
  for (const Case& at : all_cases()) {
    INFO(at.name);
    Pair pair(at);
    BatchTrainer batches = pair.batches();
    Trainer whole = pair.whole(at.config.lr);
    const std::vector<EpochRecord> found = test::run_all(batches), expected = test::run_all(whole);
    for (std::size_t i = 0; i < found.size(); ++i) {
      INFO("epoch " << i + 1);
      CHECK(found[i].loss == Approx(expected[i].loss).epsilon(1e-9));
      check_scores(found[i], expected[i]);
    }
    for (std::size_t i = 0; i < batches.state().parameters.size(); ++i) {
      const ParameterValues &p = batches.state().parameters[i], &q = whole.state().parameters[i];
      INFO(p.name);
      REQUIRE(p.value.size() == q.value.size());
      for (std::size_t byte = 0; byte < p.value.size(); byte += sizeof(double)) {
        double x = 0, y = 0;
        std::memcpy(&x, p.value.data() + byte, sizeof x);
        std::memcpy(&y, q.value.data() + byte, sizeof y);
        REQUIRE(x == Approx(y).epsilon(1e-7).margin(1e-7));
      }
    }
  }
}

TEST_CASE("batch_tasks: evaluated over all in-edges, small batches score as the whole graph does") {
  for (Case& at : all_cases()) {
    INFO(at.name);
    at.config.sampling.fanouts.hops = {3, 2};
    at.config.sampling.eval_fanouts.hops = {-1, -1};
    at.config.sampling.batch_size = 9;
    at.config.sampling.replace = at.name == "binary";
    Pair pair(at);
    BatchTrainer batches = pair.batches();
    const std::vector<EpochRecord> found = test::run_all(batches);
    CHECK(found.back().loss < found.front().loss);
    Trainer whole = pair.whole(0);  // the evaluation after the step sees the same parameters
    Checkpoint checkpoint = batches.checkpoint();
    --checkpoint.state.epoch;
    whole.restore(checkpoint, "memory");
    check_scores(found.back(), whole.run_epoch(nullptr).value());
  }
}

TEST_CASE("batch_tasks: without vertices to judge there are no scores") {
  for (const std::vector<Metric>& metrics :
       {std::vector{Metric::kAccuracy}, std::vector{Metric::kMacroF1, Metric::kAccuracy}}) {
    Case at = case_of(Task::kSingle, "single", metrics);
    at.spec.all_train = true;
    at.config.sampling.batch_size = 20;
    Pair pair(at);
    Trainer whole = pair.whole(at.config.lr);
    BatchTrainer trainer = pair.batches();
    const EpochRecord expected = whole.run_epoch(nullptr).value();
    const EpochRecord record = trainer.run_epoch(nullptr).value();
    REQUIRE(record.scores.size() == metrics.size());
    for (std::size_t i = 0; i < metrics.size(); ++i) {
      CHECK(std::isnan(record.scores[i].valid) == std::isnan(expected.scores[i].valid));
      CHECK(std::isnan(record.scores[i].test) == std::isnan(expected.scores[i].test));
    }
  }
}

TEST_CASE("batch_tasks: a batch whose labels weigh nothing changes nothing") {
  Case at = case_of(Task::kSingle, "single, weighed", {Metric::kMacroF1});
  at.config.model.class_weights = {ClassWeights::Kind::kGiven, {1, 0.5, 3, 0}};
  at.config.sampling.fanouts.hops = {2, 2};
  at.config.sampling.batch_size = 1;
  at.config.epochs = 2;
  Pair pair(at);
  BatchTrainer trainer = pair.batches();
  for (const EpochRecord& record : test::run_all(trainer)) {
    CHECK(std::isfinite(record.loss));
    CHECK(std::isfinite(record.valid_loss));
  }
  for (const ParameterValues& parameter : trainer.state().parameters) {
    for (std::size_t byte = 0; byte < parameter.value.size(); byte += sizeof(double)) {
      double value = 0;
      std::memcpy(&value, parameter.value.data() + byte, sizeof value);
      REQUIRE(std::isfinite(value));
    }
  }
}

}  // namespace
}  // namespace ooc
