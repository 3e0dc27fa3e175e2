// How parameters move: optimisers and schedules.
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>

#include "tests/engine/train/task_fixture.h"

using namespace ooc;
using test::TaskFixture;

TEST_CASE("optimisers: a step of each is PyTorch's") {
  TaskFixture fixture(Task::kSingle);
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
  TaskFixture fixture(Task::kSingle);
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
