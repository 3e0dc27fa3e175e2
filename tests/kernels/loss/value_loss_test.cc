#include <cmath>

#include "kernels/spec/element_math.h"
#include "tests/kernels/finite_difference.h"

namespace ooc::testing {
namespace {

constexpr ValueLoss kLosses[] = {ValueLoss::kSquared, ValueLoss::kAbsolute, ValueLoss::kHuber};

struct Rows {
  Dense values, labels, splits;
};

// Every split; whole rows and single entries without a label; errors on both sides of 1.
Rows random_rows(std::int64_t rows, std::int64_t targets) {
  Rows data = {random_dense(rows, targets, 1), random_dense(rows, targets, 2), Dense(rows, 1)};
  for (double& value : data.values.values) value *= 3;
  for (std::int64_t i = 0; i < rows; ++i) {
    data.splits(i, 0) = static_cast<double>(i % 4);
    for (std::int64_t c = 0; c < targets; ++c) {
      data.labels(i, c) = i % 7 == 3 || (i + c) % 5 == 4
                              ? std::nan("")
                              : static_cast<double>(static_cast<float>(data.labels(i, c)));
    }
  }
  return data;
}

// torch.nn.MSELoss, L1Loss and HuberLoss, as their documentation writes them.
double naive_loss(ValueLoss loss, double value, double label) {
  if (loss == ValueLoss::kSquared) return std::pow(value - label, 2);
  if (loss == ValueLoss::kAbsolute) return std::fabs(value - label);
  constexpr double kDelta = 1;
  if (std::fabs(value - label) < kDelta) return 0.5 * std::pow(value - label, 2);
  return kDelta * (std::fabs(value - label) - 0.5 * kDelta);
}

Dense naive_sums(ValueLoss loss, const Rows& data) {
  Dense sums(3, 2);
  for (std::int64_t i = 0; i < data.values.rows; ++i) {
    const auto split = static_cast<std::int64_t>(data.splits(i, 0));
    if (split == 0) continue;
    for (std::int64_t c = 0; c < data.values.cols; ++c) {
      if (std::isnan(data.labels(i, c))) continue;
      sums(split - 1, 0) += naive_loss(loss, data.values(i, c), data.labels(i, c));
      sums(split - 1, 1) += 1;
    }
  }
  return sums;
}

Attributes of(ValueLoss loss, double count = 0) {
  Attributes attributes;
  attributes.value = static_cast<double>(loss);
  attributes.count = count;
  return attributes;
}

}  // namespace

TEMPLATE_TEST_CASE("value loss: sums equal the formula's", "", float, double) {
  for (const ValueLoss loss : kLosses) {
    for (const std::int64_t targets : kWidths) {
      INFO("loss " << static_cast<int>(loss) << ", " << targets << " targets");
      const Rows data = random_rows(kRows, targets);
      Dense before(3, 2);
      for (double& value : before.values) value = 2;
      Dense expected = naive_sums(loss, data);
      for (double& value : expected.values) value += 2;
      const Dense sums = run_kernel<TestType>("value_loss", {data.values, data.labels, data.splits},
                                              before, {.attributes = of(loss)});
      CHECK_CLOSE(sums, expected, 4 * tolerance<TestType>());
      for (std::int64_t split = 0; split < 3; ++split) CHECK(sums(split, 1) == expected(split, 1));
    }
  }
}

TEST_CASE("value loss: the gradient equals differences of the shipped training mean") {
  for (const ValueLoss loss : kLosses) {
    for (const std::int64_t targets : {1, 9, 40}) {
      INFO("loss " << static_cast<int>(loss) << ", " << targets << " targets");
      const Rows data = random_rows(12, targets);
      const double count = naive_sums(loss, data)(0, 1);
      REQUIRE(count > 1);
      const auto mean = [&](const Dense& values) {
        return run_kernel<double>("value_loss", {values, data.labels, data.splits}, Dense(3, 2),
                                  {.attributes = of(loss)})(0, 0) /
               count;
      };
      Dense before(12, targets);
      for (double& value : before.values) value = std::nan("");
      CHECK_CLOSE(run_kernel<double>("value_loss_gradient", {data.values, data.labels, data.splits},
                                     before, {.attributes = of(loss, count)}),
                  numeric_gradient(data.values, mean), kDifferenceTolerance);
    }
  }
}

TEST_CASE("value loss: a NaN value makes loss and gradient NaN, an exact one a slope of 0") {
  for (const ValueLoss loss : kLosses) {
    Dense values(1, 1), labels(1, 1), splits(1, 1);
    splits(0, 0) = 1;
    labels(0, 0) = values(0, 0) = 0.25;
    const auto gradient = [&] {
      return run_kernel<float>("value_loss_gradient", {values, labels, splits}, Dense(1, 1),
                               {.attributes = of(loss, 1)})(0, 0);
    };
    CHECK(gradient() == 0);
    values(0, 0) = std::nan("");
    CHECK(std::isnan(gradient()));
    CHECK(std::isnan(run_kernel<float>("value_loss", {values, labels, splits}, Dense(3, 2),
                                       {.attributes = of(loss)})(0, 0)));
  }
}

}  // namespace ooc::testing
