#include "tests/kernels/finite_difference.h"

namespace ooc::testing {
namespace {

constexpr double kEpsilon = 1e-3;

RunOptions options_for(std::int64_t rows) {
  return {.attributes = {.value = kEpsilon, .count = static_cast<double>(rows)}};
}

struct Columns {
  std::vector<double> mean;
  std::vector<double> invstd;
};

// By two passes over centred values, unlike the kernels' sums of squares.
Columns column_moments(const Dense& x) {
  Columns columns;
  const auto n = static_cast<double>(x.rows);
  for (std::int64_t c = 0; c < x.cols; ++c) {
    double mean = 0;
    for (std::int64_t i = 0; i < x.rows; ++i) mean += x(i, c) / n;
    double variance = 0;
    for (std::int64_t i = 0; i < x.rows; ++i) variance += std::pow(x(i, c) - mean, 2) / n;
    columns.mean.push_back(mean);
    columns.invstd.push_back(1 / std::sqrt(variance + kEpsilon));
  }
  return columns;
}

template <class T>
Dense sums_of(const Dense& x) {
  return run_kernel<T>("batch_norm_sums", {x}, Dense(2, x.cols));
}

Dense rows_of(const Dense& x, std::int64_t first, std::int64_t last) {
  Dense part(last - first, x.cols);
  std::copy(x.values.begin() + first * x.cols, x.values.begin() + last * x.cols,
            part.values.begin());
  return part;
}

}  // namespace

TEMPLATE_TEST_CASE("batch_norm: output and gradients equal the naive formulas", "", float, double) {
  const RunOptions options = options_for(kRows);
  for (const std::int64_t d : kWidths) {
    const Dense x = random_dense(kRows, d, 1);
    const Dense g = random_dense(kRows, d, 2);
    const Dense gamma = random_dense(1, d, 3);
    const Dense beta = random_dense(1, d, 4);
    const Columns columns = column_moments(x);
    Dense y(kRows, d);
    Dense dx(kRows, d);
    Dense dgamma(1, d);
    Dense dbeta(1, d);
    for (std::int64_t c = 0; c < d; ++c) {
      const double invstd = columns.invstd[static_cast<std::size_t>(c)];
      const auto xhat = [&](std::int64_t i) {
        return (x(i, c) - columns.mean[static_cast<std::size_t>(c)]) * invstd;
      };
      for (std::int64_t i = 0; i < kRows; ++i) {
        y(i, c) = xhat(i) * gamma(0, c) + beta(0, c);
        dgamma(0, c) += g(i, c) * xhat(i);
        dbeta(0, c) += g(i, c);
      }
      for (std::int64_t i = 0; i < kRows; ++i) {
        const double n = kRows;
        dx(i, c) = gamma(0, c) * invstd * (g(i, c) - dbeta(0, c) / n - xhat(i) * dgamma(0, c) / n);
      }
    }
    const Dense sums = sums_of<TestType>(x);
    const Dense out(kRows, d);
    const double limit = 4 * tolerance<TestType>(kRows);
    CHECK_CLOSE(run_kernel<TestType>("batch_norm", {x, sums, gamma, beta}, out, options), y, limit);
    CHECK_CLOSE(
        run_kernel<TestType>("batch_norm_gamma_gradient", {g, x, sums}, Dense(1, d), options),
        dgamma, limit);
    CHECK_CLOSE(run_kernel<TestType>("batch_norm_gradient", {g, x, sums, gamma, dgamma, dbeta}, out,
                                     options),
                dx, limit);
  }
}

TEMPLATE_TEST_CASE("batch_norm: inference uses the statistics it is given", "", float, double) {
  for (const std::int64_t d : kWidths) {
    const Dense x = random_dense(kRows, d, 1);
    const Dense mean = random_dense(1, d, 2);
    Dense variance = random_dense(1, d, 3);
    for (double& value : variance.values) value = std::abs(value);
    const Dense gamma = random_dense(1, d, 4);
    const Dense beta = random_dense(1, d, 5);
    Dense y(kRows, d);
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t c = 0; c < d; ++c) {
        y(i, c) = (x(i, c) - mean(0, c)) / std::sqrt(variance(0, c) + kEpsilon) * gamma(0, c) +
                  beta(0, c);
      }
    }
    CHECK_CLOSE(run_kernel<TestType>("batch_norm_inference", {x, mean, variance, gamma, beta},
                                     Dense(kRows, d), options_for(kRows)),
                y, 4 * tolerance<TestType>());
  }
}

TEST_CASE("batch_norm: sums add up over row groups and are double for fp32 rows") {
  const Dense x = random_dense(kRows, 40, 6);
  Dense expected(2, 40);
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t c = 0; c < 40; ++c) {
      expected(0, c) += x(i, c);
      expected(1, c) += x(i, c) * x(i, c);
    }
  }
  const Dense first = run_kernel<float>("batch_norm_sums", {rows_of(x, 0, 20)}, Dense(2, 40));
  const Dense both = run_kernel<float>("batch_norm_sums", {rows_of(x, 20, kRows)}, first);
  CHECK(both.values == expected.values);
}

TEST_CASE("batch_norm: gradients equal finite differences") {
  constexpr std::int64_t kFew = 6;
  const RunOptions options = options_for(kFew);
  for (const std::int64_t d : {3, 9, 40}) {
    const Dense x = random_dense(kFew, d, 5);
    const Dense g = random_dense(kFew, d, 6);
    const Dense gamma = random_dense(1, d, 7);
    const Dense beta = random_dense(1, d, 8);
    const auto loss = [&](const Dense& x_in, const Dense& gamma_in) {
      return inner_product(
          g, run_kernel<double>("batch_norm", {x_in, sums_of<double>(x_in), gamma_in, beta},
                                Dense(kFew, d), options));
    };
    const Dense sums = sums_of<double>(x);
    const Dense dgamma =
        run_kernel<double>("batch_norm_gamma_gradient", {g, x, sums}, Dense(1, d), options);
    CHECK_CLOSE(dgamma, numeric_gradient(gamma, [&](const Dense& in) { return loss(x, in); }),
                kDifferenceTolerance);
    const Dense dbeta = run_kernel<double>("column_sum", {g}, Dense(1, d));
    CHECK_CLOSE(run_kernel<double>("batch_norm_gradient", {g, x, sums, gamma, dgamma, dbeta},
                                   Dense(kFew, d), options),
                numeric_gradient(x, [&](const Dense& in) { return loss(in, gamma); }),
                kDifferenceTolerance);
  }
}

}  // namespace ooc::testing
