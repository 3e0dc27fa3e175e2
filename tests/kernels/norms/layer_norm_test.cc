#include "tests/kernels/finite_difference.h"

namespace ooc::testing {
namespace {

constexpr double kEpsilon = 1e-3;
const RunOptions kOptions = {.attributes = {.value = kEpsilon}};

struct Moments {
  double mean = 0;
  double invstd = 0;
};

Moments row_moments(const Dense& x, std::int64_t row) {
  const auto d = static_cast<double>(x.cols);
  Moments moments;
  for (std::int64_t c = 0; c < x.cols; ++c) moments.mean += x(row, c) / d;
  double variance = 0;
  for (std::int64_t c = 0; c < x.cols; ++c) variance += x(row, c) * x(row, c) / d;
  variance = std::max(variance - moments.mean * moments.mean, 0.0);
  moments.invstd = 1 / std::sqrt(variance + kEpsilon);
  return moments;
}

}  // namespace

TEMPLATE_TEST_CASE("layer_norm: output and gradients equal the naive formulas", "", float, double) {
  constexpr std::int64_t kManyRows = 70;  // more than one run of rows
  for (const std::int64_t d : kWidths) {
    const Dense x = random_dense(kManyRows, d, 1);
    const Dense g = random_dense(kManyRows, d, 2);
    const Dense gamma = random_dense(1, d, 3);
    const Dense beta = random_dense(1, d, 4);
    Dense y(kManyRows, d);
    Dense dx(kManyRows, d);
    Dense dgamma(1, d);
    for (std::int64_t i = 0; i < kManyRows; ++i) {
      const Moments m = row_moments(x, i);
      double mean_g = 0;
      double mean_gx = 0;
      for (std::int64_t c = 0; c < d; ++c) {
        const double xhat = (x(i, c) - m.mean) * m.invstd;
        y(i, c) = xhat * gamma(0, c) + beta(0, c);
        dgamma(0, c) += g(i, c) * xhat;
        mean_g += g(i, c) * gamma(0, c) / static_cast<double>(d);
        mean_gx += g(i, c) * gamma(0, c) * xhat / static_cast<double>(d);
      }
      for (std::int64_t c = 0; c < d; ++c) {
        const double xhat = (x(i, c) - m.mean) * m.invstd;
        dx(i, c) = m.invstd * (g(i, c) * gamma(0, c) - mean_g - xhat * mean_gx);
      }
    }
    const Dense out(kManyRows, d);
    const double limit = 4 * tolerance<TestType>(kManyRows);
    CHECK_CLOSE(run_kernel<TestType>("layer_norm", {x, gamma, beta}, out, kOptions), y, limit);
    CHECK_CLOSE(run_kernel<TestType>("layer_norm_gradient", {g, x, gamma}, out, kOptions), dx,
                8 * limit);
    CHECK_CLOSE(run_kernel<TestType>("layer_norm_gamma_gradient", {g, x}, Dense(1, d), kOptions),
                dgamma, limit);
  }
}

TEST_CASE("layer_norm: gradients equal finite differences") {
  for (const std::int64_t d : {3, 9, 40}) {
    const Dense x = random_dense(5, d, 5);
    const Dense g = random_dense(5, d, 6);
    const Dense gamma = random_dense(1, d, 7);
    const Dense beta = random_dense(1, d, 8);
    const auto loss = [&](const Dense& x_in, const Dense& gamma_in) {
      return inner_product(
          g, run_kernel<double>("layer_norm", {x_in, gamma_in, beta}, Dense(5, d), kOptions));
    };
    CHECK_CLOSE(run_kernel<double>("layer_norm_gradient", {g, x, gamma}, Dense(5, d), kOptions),
                numeric_gradient(x, [&](const Dense& in) { return loss(in, gamma); }),
                kDifferenceTolerance);
    CHECK_CLOSE(run_kernel<double>("layer_norm_gamma_gradient", {g, x}, Dense(1, d), kOptions),
                numeric_gradient(gamma, [&](const Dense& in) { return loss(x, in); }),
                kDifferenceTolerance);
  }
}

TEST_CASE("layer_norm: a large common offset costs no accuracy beyond the input's own") {
  Dense x = random_dense(4, 40, 9);
  for (double& value : x.values) value = static_cast<float>(value + 1000);
  const Dense gamma = random_dense(1, 40, 10);
  const Dense beta = random_dense(1, 40, 11);
  CHECK_CLOSE(run_kernel<float>("layer_norm", {x, gamma, beta}, Dense(4, 40), kOptions),
              run_kernel<double>("layer_norm", {x, gamma, beta}, Dense(4, 40), kOptions), 1e-4);
}

}  // namespace ooc::testing
