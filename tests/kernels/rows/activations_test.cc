#include <bit>

#include "kernels/spec/element_math.h"
#include "tests/kernels/finite_difference.h"

namespace ooc::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSmallestNormal = 0x1p-126;

// Every activation as PyTorch documents it, in double.
double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double exact_elu(double x) { return x > 0 ? x : std::expm1(x); }
double exact_gelu(double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double exact_leaky_relu(double x) { return x > 0 ? x : 0.2 * x; }
double exact_exp(double x) { return std::exp(x); }
double exact_tanh(double x) { return std::tanh(x); }

struct Activation {
  const char* name;
  double (*exact)(double);
  bool gradient_reads_input = false;
};
const Activation kActivations[] = {{"sigmoid", exact_sigmoid}, {"tanh", exact_tanh},
                                   {"elu", exact_elu},         {"leaky_relu", exact_leaky_relu},
                                   {"gelu", exact_gelu, true}, {"exp", exact_exp}};

RunOptions with_slope() { return {.attributes = {.value = 0.2}}; }

Dense mapped(const Dense& x, double (*f)(double)) {
  Dense y = x;
  for (double& value : y.values) value = f(value);
  return y;
}

// g f'(x), by central differences of the formula.
Dense mapped_gradient(const Dense& x, const Dense& g, double (*f)(double)) {
  constexpr double kStep = 1e-5;
  Dense gradient = x;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double at = x.values[i];
    gradient.values[i] = g.values[i] * (f(at + kStep) - f(at - kStep)) / (2 * kStep);
  }
  return gradient;
}

// Floats over the whole range, of both signs: every 4,099th bit pattern and those around zero,
// the least normal number, one, and where exponentials overflow and vanish.
template <class F>
void for_each_float(F&& f) {
  for (std::uint32_t bits = 0; bits <= 0x7f7fffffu; bits += 4099) {
    f(std::bit_cast<float>(bits));
    f(-std::bit_cast<float>(bits));
  }
  for (const float centre : {0x1p-149F, 0x1p-126F, 0.34657F, 1.0F, 2.0F, 87.33654F, 88.72284F,
                             88.02969F, 103.97208F, 3e38F}) {
    float below = centre, above = centre;
    for (int i = 0; i < 200; ++i) {
      for (const float x : {below, above, -below, -above}) {
        if (std::isfinite(x)) f(x);
      }
      below = std::nextafter(below, 0.0F);
      above = std::nextafter(above, std::numeric_limits<float>::infinity());
    }
  }
}

// The distance in units of the last place of the exact result (subnormal ones have one unit).
double ulps(float actual, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isinf(rounded)) return std::isinf(actual) ? 0 : kInfinity;
  const double magnitude = std::max(std::abs(exact), kSmallestNormal);
  const double unit = std::ldexp(1.0, std::ilogb(magnitude) - 23);
  return std::abs(static_cast<double>(actual) - exact) / unit;
}

struct Worst {
  double error = 0;
  float at = 0;
  void take(double candidate, float x) {
    if (candidate <= error) return;
    error = candidate;
    at = x;
  }
};

}  // namespace

TEMPLATE_TEST_CASE("activations: the kernels equal the formulas", "", float, double) {
  for (const std::int64_t d : kWidths) {
    Dense x = random_dense(kRows, d, 4);
    for (double& value : x.values) value *= 6;
    for (const Activation& activation : kActivations) {
      INFO(activation.name << ", " << d << " columns");
      const Dense y = run_kernel<TestType>(activation.name, {x}, Dense(kRows, d), with_slope());
      CHECK_CLOSE(y, mapped(x, activation.exact), tolerance<TestType>());
    }
  }
}

TEST_CASE("activations: the gradients equal central differences") {
  for (const std::int64_t d : {5, 40}) {
    const Dense x = random_dense(kRows, d, 5);
    const Dense g = random_dense(kRows, d, 6);
    for (const Activation& activation : kActivations) {
      const std::string name = activation.name;
      if (name == "exp") continue;  // its gradient is mul
      INFO(name << ", " << d << " columns");
      const auto forward = [&](const Dense& input) {
        return run_kernel<double>(name, {input}, Dense(kRows, d), with_slope());
      };
      const Dense second = activation.gradient_reads_input ? x : forward(x);
      CHECK_CLOSE(
          run_kernel<double>(name + "_gradient", {g, second}, Dense(kRows, d), with_slope()),
          mapped_gradient(x, g, activation.exact), 1e-7);
    }
  }
}

TEMPLATE_TEST_CASE("activations: NaN stays NaN, infinities go to their limits", "", float, double) {
  const double nan = std::nan("");
  Dense x(3, 33);
  for (std::int64_t c = 0; c < 33; ++c) {
    x(0, c) = nan;
    x(1, c) = kInfinity;
    x(2, c) = -kInfinity;
  }
  const struct {
    const char* name;
    double at_infinity;
    double at_minus_infinity;
  } limits[] = {{"sigmoid", 1, 0},      {"tanh", 1, -1},
                {"elu", kInfinity, -1}, {"leaky_relu", kInfinity, -kInfinity},
                {"exp", kInfinity, 0},  {"gelu", kInfinity, nan},
                {"relu", kInfinity, 0}};
  for (const auto& limit : limits) {
    INFO(limit.name);
    const Dense y = run_kernel<TestType>(limit.name, {x}, Dense(3, 33), with_slope());
    for (const std::int64_t c : {0, 32}) {
      CHECK(std::isnan(y(0, c)));
      CHECK(y(1, c) == limit.at_infinity);
      CHECK((y(2, c) == limit.at_minus_infinity || std::isnan(limit.at_minus_infinity)));
    }
  }
}

TEST_CASE("activations: single precision keeps its bounds over the whole range") {
  Worst exp_worst, sigmoid_worst, tanh_worst, elu_worst, cdf_worst, cdf_tail, gelu_worst;
  for_each_float([&](float x) {
    const auto wide = static_cast<double>(x);
    exp_worst.take(ulps(exponential(x), std::exp(wide)), x);
    const double s = wide < 0 ? std::exp(wide) / (1 + std::exp(wide)) : exact_sigmoid(wide);
    const float y = ooc::sigmoid(x);
    sigmoid_worst.take(s < 2 * kSmallestNormal && y == 0 ? 0 : ulps(y, s), x);
    tanh_worst.take(ulps(hyperbolic_tangent(x), std::tanh(wide)), x);
    elu_worst.take(ulps(ooc::elu(x), exact_elu(wide)), x);
    const double cdf = 0.5 * std::erfc(-wide / std::sqrt(2.0));
    cdf_worst.take(std::abs(static_cast<double>(normal_cdf(x, bell(x))) - cdf), x);
    if (x > -13) cdf_tail.take(std::abs(static_cast<double>(normal_cdf(x, bell(x))) / cdf - 1), x);
    if (x > -13) {
      gelu_worst.take(std::abs(static_cast<double>(ooc::gelu(x)) - exact_gelu(wide)) /
                          std::max(std::abs(exact_gelu(wide)), 0x1p-120),
                      x);
    }
  });
  const auto check = [](const char* name, const Worst& worst, double limit) {
    INFO(name << ": " << worst.error << " at " << worst.at);
    CHECK(worst.error <= limit);
  };
  check("exp", exp_worst, 2);
  check("sigmoid", sigmoid_worst, 3);
  check("tanh", tanh_worst, 3);
  check("elu", elu_worst, 2);
  check("normal_cdf", cdf_worst, 2e-7);
  check("normal_cdf above -13, relative", cdf_tail, 1e-5);
  check("gelu above -13, relative", gelu_worst, 1e-5);
}

}  // namespace ooc::testing
