#include <cmath>

#include "tests/kernels/finite_difference.h"

namespace ooc::testing {
namespace {

struct Rows {
  Dense logits, labels, splits, weights;
};

// Every split, some rows unlabelled, a class of weight 0.
Rows random_rows(std::int64_t rows, std::int64_t classes) {
  Rows data = {random_dense(rows, classes, 1), Dense(rows, 1), Dense(rows, 1),
               random_dense(1, classes, 2)};
  for (double& value : data.logits.values) value *= 5;
  for (double& value : data.weights.values) value = 1.5 + value;
  if (classes > 3) data.weights(0, 2) = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    data.labels(i, 0) = i % 7 == 3 ? -1.0 : static_cast<double>(i * 5 % classes);
    data.splits(i, 0) = static_cast<double>(i % 4);
  }
  return data;
}

// -log softmax(logits)[label]
double negative_log_likelihood(const Dense& logits, std::int64_t i, std::int64_t label) {
  double sum = 0;
  for (std::int64_t c = 0; c < logits.cols; ++c) sum += std::exp(logits(i, c) - logits(i, label));
  return std::log(sum);
}

// torch.nn.functional.cross_entropy(weight=w) of the rows of one split: mean and sum of weights.
std::pair<double, double> naive_mean(const Rows& data, int split) {
  double loss = 0, weights = 0;
  for (std::int64_t i = 0; i < data.logits.rows; ++i) {
    const auto label = static_cast<std::int64_t>(data.labels(i, 0));
    if (data.splits(i, 0) != split || label < 0) continue;
    loss += data.weights(0, label) * negative_log_likelihood(data.logits, i, label);
    weights += data.weights(0, label);
  }
  return {loss / weights, weights};
}

// Multi-label rows as a dataset stores them: 255 where unlabelled, whole rows and single entries.
Rows random_bits(std::int64_t rows, std::int64_t classes) {
  Rows data = random_rows(rows, classes);
  data.labels = Dense(rows, classes);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < classes; ++c) {
      data.labels(i, c) =
          i % 7 == 3 || (i + c) % 5 == 4 ? 255 : static_cast<double>((i * 3 + c * c) % 2);
    }
  }
  return data;
}

// torch.nn.functional.binary_cross_entropy_with_logits with pos_weight and right bits, in sums.
Dense naive_bit_sums(const Rows& data) {
  const std::int64_t classes = data.logits.cols;
  Dense sums(3, 3);
  for (std::int64_t i = 0; i < data.logits.rows; ++i) {
    const auto split = static_cast<std::int64_t>(data.splits(i, 0));
    if (split == 0) continue;
    for (std::int64_t c = 0; c < classes; ++c) {
      if (data.labels(i, c) == 255) continue;
      const double s = 1 / (1 + std::exp(-data.logits(i, c))), y = data.labels(i, c);
      sums(split - 1, 0) -= data.weights(0, c) * y * std::log(s) + (1 - y) * std::log(1 - s);
      sums(split - 1, 1) += (s > 0.5) == (y == 1) ? 1.0 : 0.0;
      sums(split - 1, 2) += 1;
    }
  }
  return sums;
}

}  // namespace

TEMPLATE_TEST_CASE("weighted loss: the mean is torch's weighted one", "", float, double) {
  for (const std::int64_t classes : kWidths) {
    INFO(classes << " classes");
    const Rows data = random_rows(kRows, classes);
    const Dense sums =
        run_kernel<TestType>("softmax_cross_entropy_weighted",
                             {data.logits, data.labels, data.splits, data.weights}, Dense(3, 4));
    const Dense plain = run_kernel<TestType>("softmax_cross_entropy",
                                             {data.logits, data.labels, data.splits}, Dense(3, 3));
    for (int split = 1; split <= 3; ++split) {
      const auto [mean, weights] = naive_mean(data, split);
      CHECK(sums(split - 1, 0) / sums(split - 1, 3) ==
            Approx(mean).epsilon(8 * tolerance<TestType>()));
      CHECK(sums(split - 1, 3) == Approx(weights).epsilon(tolerance<TestType>()));
      CHECK(sums(split - 1, 1) == plain(split - 1, 1));
      CHECK(sums(split - 1, 2) == plain(split - 1, 2));
    }
  }
}

TEST_CASE("weighted loss: the gradient equals differences of the weighted training mean") {
  for (const std::int64_t classes : {2, 9, 40}) {
    INFO(classes << " classes");
    const Rows data = random_rows(12, classes);
    const double count = naive_mean(data, 1).second;
    CHECK_CLOSE(run_kernel<double>("softmax_cross_entropy_weighted_gradient",
                                   {data.logits, data.labels, data.splits, data.weights},
                                   Dense(12, classes), {.attributes = {.count = count}}),
                numeric_gradient(data.logits,
                                 [&](const Dense& logits) {
                                   Rows moved = data;
                                   moved.logits = logits;
                                   return naive_mean(moved, 1).first;
                                 }),
                kDifferenceTolerance);
  }
}

TEMPLATE_TEST_CASE("sigmoid loss: sums equal the formula's", "", float, double) {
  for (const std::int64_t classes : kWidths) {
    INFO(classes << " classes");
    Rows data = random_bits(kRows, classes);
    Dense before(3, 3);
    for (double& value : before.values) value = 2;
    const auto expected = [&] {
      Dense sums = naive_bit_sums(data);
      for (double& value : sums.values) value += 2;
      return sums;
    };
    CHECK_CLOSE(run_kernel<TestType>("sigmoid_cross_entropy_weighted",
                                     {data.logits, data.labels, data.splits, data.weights}, before),
                expected(), 4 * tolerance<TestType>());
    for (double& weight : data.weights.values) weight = 1;
    CHECK_CLOSE(run_kernel<TestType>("sigmoid_cross_entropy",
                                     {data.logits, data.labels, data.splits}, before),
                expected(), 4 * tolerance<TestType>());
  }
}

TEST_CASE("sigmoid loss: the gradient equals differences of the training mean") {
  for (const std::int64_t classes : {1, 9, 40}) {
    for (const bool weighted : {false, true}) {
      INFO(classes << " classes, weighted " << weighted);
      Rows data = random_bits(12, classes);
      std::vector<Dense> operands{data.logits, data.labels, data.splits};
      if (weighted) operands.push_back(data.weights);
      for (double& weight : data.weights.values) weight = weighted ? weight : 1;
      const double count = naive_bit_sums(data)(0, 2);
      REQUIRE(count > 1);
      Dense before(12, classes);
      for (double& value : before.values) value = std::nan("");
      CHECK_CLOSE(run_kernel<double>(weighted ? "sigmoid_cross_entropy_weighted_gradient"
                                              : "sigmoid_cross_entropy_gradient",
                                     operands, before, {.attributes = {.count = count}}),
                  numeric_gradient(data.logits,
                                   [&](const Dense& logits) {
                                     Rows moved = data;
                                     moved.logits = logits;
                                     return naive_bit_sums(moved)(0, 0) / count;
                                   }),
                  kDifferenceTolerance);
    }
  }
}

TEST_CASE("sigmoid loss: large logits neither overflow nor vanish, a NaN makes the loss NaN") {
  const auto loss_of = [](double logit, double bit) {
    Dense logits(1, 1), labels(1, 1), splits(1, 1);
    logits(0, 0) = logit;
    labels(0, 0) = bit;
    splits(0, 0) = 1;
    return run_kernel<float>("sigmoid_cross_entropy", {logits, labels, splits}, Dense(3, 3))(0, 0);
  };
  CHECK(loss_of(500, 0) == 500);
  CHECK(loss_of(-500, 1) == 500);
  CHECK(loss_of(500, 1) == 0);
  CHECK(loss_of(20, 1) == Approx(std::log1p(std::exp(-20))).epsilon(1e-5));
  CHECK(std::isnan(loss_of(std::nan(""), 0)));
  CHECK(std::isnan(loss_of(std::nan(""), 1)));
}

}  // namespace ooc::testing
