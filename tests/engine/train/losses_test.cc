// What the loss is made of: values, and the weights of classes.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/engine/train/task_fixture.h"

using namespace ooc;
using test::kSplitOf;
using test::kVertices;
using test::TaskFixture;

TEST_CASE("tasks: values are learnt by every loss, and come out as they are scored") {
  for (const Loss loss : {Loss::kSquared, Loss::kAbsolute, Loss::kHuber}) {
    INFO("loss " << word_of(kLosses, loss));
    TaskFixture fixture(Task::kRegression);
    fixture.config.model.loss = loss;
    fixture.config.metrics = {Metric::kMae, Metric::kR2};
    fixture.config.epochs = 60;
    CHECK_NOTHROW(fixture.dataset->verify());
    const RunResult run = fixture.run(false);
    const auto lines = fixture.lines();
    CHECK(lines.back().at("loss") < 0.7 * lines.front().at("loss").get<double>());
    double lowest = std::numeric_limits<double>::infinity();
    for (const auto& line : lines) lowest = std::min(lowest, line.at("valid").get<double>());
    CHECK(run.summary.at("best_valid") == lowest);
    const Checkpoint last = read_checkpoint(fixture.files, "/run/checkpoint-60.h5", DType::kF32);
    const InferenceResult result =
        run_inference(fixture.files, *fixture.backend, *fixture.io, *fixture.dataset, last,
                      {.output = Output::kValues,
                       .path = "/values.npy",
                       .metrics = {Metric::kRmse, Metric::kMae}},
                      nullptr);
    const std::vector<float> values = test::rows_of(fixture.files, "/values.npy");
    REQUIRE(values.size() == static_cast<std::size_t>(kVertices) * 3);
    double rmse = 0, mae = 0, mean_loss = 0, labels = 0;
    for (std::int64_t c = 0; c < 3; ++c) {
      double squares = 0, sizes = 0, count = 0;
      for (std::int64_t v = 0; v < kVertices; ++v) {
        const float label = test::tiny_value(fixture.spec, v, c);
        if (kSplitOf[v % 5] != 2 || std::isnan(label)) continue;
        const double d = double{values[static_cast<std::size_t>(v * 3 + c)]} - label;
        squares += d * d;
        sizes += std::abs(d);
        ++count;
        mean_loss += loss == Loss::kSquared    ? d * d
                     : loss == Loss::kAbsolute ? std::abs(d)
                     : std::abs(d) < 1         ? d * d / 2
                                               : std::abs(d) - 0.5;
      }
      rmse += std::sqrt(squares / count) / 3;
      mae += sizes / count / 3;
      labels += count;
    }
    CHECK(result.scores.at(0).valid == Approx(rmse).epsilon(1e-12));
    CHECK(result.scores.at(1).valid == Approx(mae).epsilon(1e-12));
    CHECK(lines.back().at("valid") == result.scores.at(1).valid);
    CHECK(lines.back().at("valid_loss").get<double>() == Approx(mean_loss / labels).epsilon(1e-12));
  }
}

TEST_CASE("tasks: balanced classes weigh the same, in the loss and the parameters kept for it") {
  TaskFixture fixture(Task::kSingle);
  std::vector<double> counts(4), expected;
  double vertices = 0;
  for (std::int64_t v = 0; v < kVertices; ++v) {
    if (kSplitOf[v % 5] != 1) continue;
    ++counts[static_cast<std::size_t>(test::tiny_label(fixture.spec, v))];
    ++vertices;
  }
  for (const double count : counts) expected.push_back(vertices / (4 * count));
  const std::vector<double> weights =
      class_weights_of(*fixture.dataset, kBalancedWeights, Task::kSingle);
  REQUIRE(weights.size() == 4);
  for (std::size_t c = 0; c < 4; ++c) CHECK(weights[c] == Approx(expected[c]));
  CHECK(*std::max_element(weights.begin(), weights.end()) > 1.01);
  fixture.config.model.class_weights = kBalancedWeights;
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
  fixture.config.model.class_weights = {};
  fixture.after_epochs(1);
  CHECK(weighted == Approx(fixture.last.loss).epsilon(0.05));
  CHECK(weighted != fixture.last.loss);
}

TEST_CASE("class weights: of classes and of ones, as they are and by what occurs") {
  CHECK(to_text(parse_class_weights("1,0.5,2e-3").value()) == "1,0.5,0.002");
  CHECK(parse_class_weights("balanced") == kBalancedWeights);
  for (const char* text : {"", "1,", ",1", "1,-1", "nan", "inf", "1;2", "1, 2"}) {
    INFO(text);
    CHECK_FALSE(parse_class_weights(text));
  }
  TaskFixture many(Task::kMultiLabel);
  std::vector<double> ones(4);
  double vertices = 0;
  for (std::int64_t v = 0; v < kVertices; ++v) {
    if (kSplitOf[v % 5] != 1) continue;
    ++vertices;
    for (std::int64_t c = 0; c < 4; ++c) {
      ones[static_cast<std::size_t>(c)] += test::tiny_bit(many.spec, v, c) ? 1 : 0;
    }
  }
  const auto weights = class_weights_of(*many.dataset, kBalancedWeights, Task::kMultiLabel);
  for (std::size_t c = 0; c < 4; ++c) CHECK(weights[c] == Approx((vertices - ones[c]) / ones[c]));
  // Of single labels only their ratio counts; together the training vertices weigh their number.
  TaskFixture single(Task::kSingle);
  const ClassWeights given{ClassWeights::Kind::kGiven, {1, 0, 4, 2}};
  const auto scaled = class_weights_of(*single.dataset, given, Task::kSingle);
  double sum = 0, count = 0;
  for (std::int64_t v = 0; v < kVertices; ++v) {
    if (kSplitOf[v % 5] != 1) continue;
    sum += scaled[static_cast<std::size_t>(test::tiny_label(single.spec, v))];
    ++count;
  }
  CHECK(sum == Approx(count));
  CHECK(
      (scaled[1] == 0 && scaled[2] == Approx(4 * scaled[0]) && scaled[3] == Approx(2 * scaled[0])));
}
