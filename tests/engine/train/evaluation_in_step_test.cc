// Evaluation as part of the next training step: what both do is done once, and nothing else
// changes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "storage/base/errors.h"
#include "tests/engine/tiny_training.h"

using namespace ooc;
using test::TinyDataset;
using test::TinyTraining;

namespace {

// So many epochs that one more step is nothing.
RunConfig config_of(const std::string& model, double dropout) {
  RunConfig config;
  config.model.model = model;
  config.model.hidden = 40;
  config.model.dropout = dropout;
  if (model == "gat") config.model.heads = 2;
  config.epochs = 1000;
  return config;
}

struct Epoch {
  double loss = 0, valid_loss = 0;
  Scores scores;
  std::vector<ParameterValues> parameters;
};

Epoch run_epoch(Trainer& trainer) {
  const EpochRecord record = trainer.run_epoch(nullptr).value();
  return {record.loss, record.valid_loss, record.scores.empty() ? Scores{} : record.scores.front(),
          trainer.state().parameters};
}

std::vector<Epoch> run_epochs(Trainer& trainer, std::int64_t epochs) {
  std::vector<Epoch> result;
  while (trainer.state().epoch < epochs) result.push_back(run_epoch(trainer));
  return result;
}

bool same_state(const Epoch& a, const Epoch& b) {
  return a.loss == b.loss &&
         std::ranges::equal(a.parameters, b.parameters, [](const auto& x, const auto& y) {
           return x.name == y.name && x.value == y.value && x.m == y.m && x.v == y.v;
         });
}

bool same_scores(const Epoch& a, const Epoch& b) {
  return a.valid_loss == b.valid_loss && a.scores.train == b.scores.train &&
         a.scores.valid == b.scores.valid && a.scores.test == b.scores.test;
}

std::size_t steps_of(const Plan& plan) {
  std::size_t steps = 0;
  for (const Section& section : plan.sections) {
    for (const Pass& pass : section.passes) {
      steps += pass.steps.size() + pass.propagation.folds.size();
    }
  }
  return steps;
}

// Bits of training and of evaluation are those of an evaluation of its own, which an evaluation
// every other epoch asks for.
void check_against_apart(const TinyDataset& spec, RunConfig config, const PlanOptions& plan = {}) {
  INFO(config.model.model << ", dropout " << config.model.dropout << ", " << plan.memory_bytes
                          << " bytes");
  TinyTraining training(spec);
  constexpr std::int64_t kEpochs = 4;
  config.eval_every = 2;
  Trainer& apart = training.start(config, plan);
  REQUIRE_FALSE(apart.plan().evaluates_in_step());
  const std::size_t steps = steps_of(apart.plan().epoch_plan());
  const std::vector<Epoch> expected = run_epochs(apart, kEpochs);
  config.eval_every = 1;
  Trainer& within = training.start(config, plan);
  REQUIRE(within.plan().evaluates_in_step());
  CHECK(within.plan().epoch_plan().sections.size() == 1);
  CHECK(steps_of(within.plan().epoch_plan()) < steps);
  for (const Epoch& epoch : expected) {
    const EpochRecord record = within.run_epoch(nullptr).value();
    const Epoch now{record.loss, record.valid_loss, record.scores.front(),
                    within.state().parameters};
    INFO("epoch " << record.epoch);
    CHECK(std::isfinite(record.loss + record.valid_loss));
    CHECK(same_state(now, epoch));
    if (record.epoch % 2 == 0) CHECK(same_scores(now, epoch));
    if (record.epoch == 1) continue;  // two steps, and what stays comes into memory
    CHECK(record.counters.bytes_read == within.plan().bytes_read());
    CHECK(record.counters.bytes_written == within.plan().bytes_written());
  }
}

}  // namespace

TEST_CASE("evaluation in the step: every model trains and scores the same bits") {
  for (const char* model : {"gcn", "sage", "sage_pool", "gin", "gat", "resgcn", "ggcn"}) {
    for (const double dropout : {0.0, 0.4}) {
      check_against_apart(test::graph_of_three_spans(), config_of(model, dropout));
    }
  }
}

TEST_CASE("evaluation in the step: so it does with norms, other metrics, and in little memory") {
  RunConfig config = config_of("sage", 0.3);
  config.model.layers = 3;
  config.model.norm = Norm::kBatch;
  config.model.residual = true;
  check_against_apart(test::graph_of_three_spans(), config);
  check_against_apart(test::graph_of_three_spans(), config, {.memory_bytes = 5 << 20});
  config = config_of("gcn", 0.3);
  config.metrics = {Metric::kMacroF1};  // of logits, which the step hands out
  check_against_apart(test::graph_of_three_spans(), config);
  check_against_apart(test::graph_of_three_spans(), config, {.memory_bytes = 1 << 20});
  check_against_apart(test::graph_of_three_spans(), config,
                      {.memory_bytes = 4 << 20, .device = true, .device_memory_bytes = 2 << 20});
  TinyDataset few = test::graph_of_three_spans();
  few.train_every = 20;  // most rows of gradients are zero
  check_against_apart(few, config_of("gcn", 0.0));
}

TEST_CASE("evaluation in the step: without dropout an epoch is not much more than a step") {
  TinyTraining training;
  const RunConfig config = config_of("gcn", 0);
  const std::size_t within = steps_of(training.start(config, PlanOptions{}).plan().epoch_plan());
  const ModelProgram alone(config.model, facts_of(training.dataset()), Mode::kTrain,
                           {.gradients = true}, DType::kF32);
  std::size_t steps = 0;
  for (const Stage& stage : alone.program().stages) {
    steps += stage.steps.size() + (stage.propagation ? stage.propagation->folds.size() : 0);
  }
  CHECK(within == steps);  // the same forward, the same loss
}

TEST_CASE("evaluation in the step: an epoch that is stopped is dropped, with the step ahead") {
  TinyTraining training;
  const RunConfig config = config_of("gcn", 0.4);
  const std::vector<Epoch> expected = run_epochs(training.start(config, PlanOptions{}), 5);
  Trainer& trainer = training.start(config, PlanOptions{});
  REQUIRE(trainer.plan().evaluates_in_step());
  run_epochs(trainer, 3);
  const std::atomic<bool> stop = true;
  CHECK_FALSE(trainer.run_epoch(&stop));
  CHECK(trainer.state().epoch == 3);
  CHECK(trainer.state().parameters.front().value == expected[2].parameters.front().value);
  const Checkpoint third = trainer.checkpoint();
  for (std::size_t epoch = 3; epoch < 5; ++epoch) {
    const Epoch now = run_epoch(trainer);
    CHECK((same_state(now, expected[epoch]) && same_scores(now, expected[epoch])));
  }
  // Back from a step ahead, and in another process.
  trainer.restore(third, "memory");
  CHECK(same_state(run_epoch(trainer), expected[3]));
  Trainer& another = training.start(config, PlanOptions{});
  another.restore(third, "memory");
  for (std::size_t epoch = 3; epoch < 5; ++epoch) {
    const Epoch now = run_epoch(another);
    CHECK((same_state(now, expected[epoch]) && same_scores(now, expected[epoch])));
  }
}

TEST_CASE("evaluation in the step: the last epoch is evaluated, and its step is the last") {
  TinyTraining training;
  RunConfig config = config_of("gcn", 0);
  config.epochs = 20;
  Trainer& within = training.start(config, PlanOptions{});
  REQUIRE(within.plan().evaluates_in_step());
  const std::vector<Epoch> epochs = run_epochs(within, 20);
  config.eval_every = 20;
  const Epoch last = run_epochs(training.start(config, PlanOptions{}), 20).back();
  CHECK(same_state(epochs.back(), last));
  CHECK(same_scores(epochs.back(), last));
}

TEST_CASE("evaluation in the step: a model that breaks says so in the same epoch") {
  for (const std::int64_t eval_every : {1, 2}) {
    TinyTraining training;
    RunConfig config = config_of("gcn", 0);
    config.eval_every = eval_every;
    config.optimizer = OptimizerKind::kSgd;
    config.lr = 1e30;
    Trainer& trainer = training.start(config, PlanOptions{});
    CHECK(trainer.plan().evaluates_in_step() == (eval_every == 1));
    CHECK_THROWS_AS(run_epochs(trainer, 10), RunError);
    CHECK(trainer.state().epoch < 3);
    for (const ParameterValues& parameter : trainer.state().best.parameters) {
      const auto* values = reinterpret_cast<const float*>(parameter.value.data());
      CHECK(std::isfinite(values[0]));
    }
  }
}

TEST_CASE("evaluation in the step: not where it isn't wanted of every step, or bits would change") {
  TinyDataset spec = test::graph_of_three_spans();
  spec.edge_types = 2;
  TinyTraining training(spec);
  const auto in_step = [&](const RunConfig& config) {
    return training.start(config, PlanOptions{}).plan().evaluates_in_step();
  };
  RunConfig config = config_of("mpgcn", 0);
  CHECK(in_step(config));
  for (const char* without : {"-common", "-dead"}) {
    config.rewrites = without;
    CHECK_FALSE(in_step(config));
  }
  config.rewrites = "-motion";  // edges are multiplied, a batch at a time
  CHECK_FALSE(in_step(config));
  config.rewrites.clear();
  config.eval_every = 3;
  CHECK_FALSE(in_step(config));
  config.eval_every = 1;
  config.epochs = 1;  // two steps for one
  CHECK_FALSE(in_step(config));
}
