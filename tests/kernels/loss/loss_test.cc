#include "kernels/spec/element_math.h"
#include "tests/kernels/finite_difference.h"

namespace ooc::testing {
namespace {

struct Labelled {
  Dense logits;
  Dense labels;
  Dense splits;
};

// Every split, some rows unlabelled, logits wide enough to underflow single exponentials.
Labelled random_rows(std::int64_t rows, std::int64_t classes, double spread) {
  Labelled data = {random_dense(rows, classes, 1), Dense(rows, 1), Dense(rows, 1)};
  for (double& value : data.logits.values) value *= spread;
  for (std::int64_t i = 0; i < rows; ++i) {
    data.labels(i, 0) = i % 7 == 3 ? -1.0 : static_cast<double>(i * 5 % classes);
    data.splits(i, 0) = static_cast<double>(i % 4);
  }
  return data;
}

double row_loss(const Dense& logits, std::int64_t i, std::int64_t label) {
  long double sum = 0;  // relative to the label: no maximum is taken
  for (std::int64_t c = 0; c < logits.cols; ++c) {
    sum += std::exp(static_cast<long double>(logits(i, c) - logits(i, label)));
  }
  return static_cast<double>(std::log(sum));
}

Dense naive_sums(const Labelled& data) {
  Dense sums(3, 3);
  for (std::int64_t i = 0; i < data.logits.rows; ++i) {
    const auto split = static_cast<std::int64_t>(data.splits(i, 0));
    const auto label = static_cast<std::int64_t>(data.labels(i, 0));
    if (split == 0 || label < 0) continue;
    bool correct = true;
    for (std::int64_t c = 0; c < data.logits.cols; ++c) {
      const bool beats = data.logits(i, c) > data.logits(i, label) ||
                         (c < label && data.logits(i, c) == data.logits(i, label));
      correct = correct && !beats;
    }
    sums(split - 1, 0) += row_loss(data.logits, i, label);
    sums(split - 1, 1) += correct ? 1 : 0;
    sums(split - 1, 2) += 1;
  }
  return sums;
}

}  // namespace

TEMPLATE_TEST_CASE("loss: cross-entropy sums equal the naive ones", "", float, double) {
  for (const std::int64_t classes : kWidths) {
    for (const double spread : {0.5, 30.0}) {
      const Labelled data = random_rows(kRows, classes, spread);
      Dense before(3, 3);
      for (double& value : before.values) value = 2;
      Dense expected = naive_sums(data);
      for (double& value : expected.values) value += 2;
      const Dense actual = run_kernel<TestType>("softmax_cross_entropy",
                                                {data.logits, data.labels, data.splits}, before);
      CHECK_CLOSE(actual, expected, 4 * tolerance<TestType>());
      for (std::int64_t split = 0; split < 3; ++split) {
        CHECK(actual(split, 1) == expected(split, 1));
        CHECK(actual(split, 2) == expected(split, 2));
      }
    }
  }
}

TEMPLATE_TEST_CASE("loss: the gradient is (softmax - onehot) / count on training rows", "", float,
                   double) {
  for (const std::int64_t classes : kWidths) {
    const Labelled data = random_rows(kRows, classes, 10);
    constexpr double kCount = 8;
    Dense expected(kRows, classes);
    for (std::int64_t i = 0; i < kRows; ++i) {
      const auto label = static_cast<std::int64_t>(data.labels(i, 0));
      if (data.splits(i, 0) != 1 || label < 0) continue;
      for (std::int64_t c = 0; c < classes; ++c) {
        expected(i, c) = (std::exp(-row_loss(data.logits, i, c)) - (c == label ? 1 : 0)) / kCount;
      }
    }
    Dense before(kRows, classes);
    for (double& value : before.values) value = std::nan("");
    const Dense actual = run_kernel<TestType>("softmax_cross_entropy_gradient",
                                              {data.logits, data.labels, data.splits}, before,
                                              {.attributes = {.count = kCount}});
    CHECK_CLOSE(actual, expected, 2 * tolerance<TestType>());
  }
}

TEST_CASE("loss: the gradient equals finite differences of the mean training loss") {
  for (const std::int64_t classes : {2, 9, 40}) {
    const Labelled data = random_rows(12, classes, 2);
    const auto sums_of = [&](const Dense& logits) {
      return run_kernel<double>("softmax_cross_entropy", {logits, data.labels, data.splits},
                                Dense(3, 3));
    };
    const double count = sums_of(data.logits)(0, 2);
    REQUIRE(count > 1);
    CHECK_CLOSE(
        run_kernel<double>("softmax_cross_entropy_gradient",
                           {data.logits, data.labels, data.splits}, Dense(12, classes),
                           {.attributes = {.count = count}}),
        numeric_gradient(data.logits,
                         [&](const Dense& logits) { return sums_of(logits)(0, 0) / count; }),
        kDifferenceTolerance);
  }
}

TEST_CASE("loss: ties go to the lowest class") {
  Dense logits(2, 40);
  logits(0, 5) = logits(0, 35) = 3;
  logits(1, 5) = logits(1, 35) = 3;
  Dense labels(2, 1);
  labels(0, 0) = 5;
  labels(1, 0) = 35;
  Dense splits(2, 1);
  splits(0, 0) = splits(1, 0) = 2;
  const Dense sums =
      run_kernel<float>("softmax_cross_entropy", {logits, labels, splits}, Dense(3, 3));
  CHECK(sums(1, 1) == 1);
  CHECK(sums(1, 2) == 2);
}

TEST_CASE("loss: a NaN logit makes the loss NaN") {
  Dense logits(1, 9);
  logits(0, 4) = std::nan("");
  Dense splits(1, 1);
  splits(0, 0) = 1;
  CHECK(std::isnan(run_kernel<float>("softmax_cross_entropy", {logits, Dense(1, 1), splits},
                                     Dense(3, 3))(0, 0)));
}

TEST_CASE("loss: the single-precision exponential is within two units of the last place") {
  for (double x = -87; x <= 0; x += 0.00731) {
    const auto narrow = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(narrow));
    const double unit = std::nextafter(static_cast<float>(exact), 2.0F) - static_cast<float>(exact);
    REQUIRE(std::abs(exp_nonpositive(narrow) - exact) <= 2 * unit);
  }
  CHECK(exp_nonpositive(0.0F) == 1.0F);
  CHECK(exp_nonpositive(-200.0F) == 0.0F);
  CHECK(exp_nonpositive(-std::numeric_limits<float>::infinity()) == 0.0F);
  CHECK(std::isnan(exp_nonpositive(std::nanf(""))));
}

}  // namespace ooc::testing
