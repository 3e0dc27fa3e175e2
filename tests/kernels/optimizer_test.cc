#include "tests/kernels/run_kernel.h"

namespace ooc::testing {
namespace {

// Adam as published: bias-corrected moments first, then the step.
struct NaiveAdam {
  double m = 0;
  double v = 0;
  double step(double parameter, double gradient, int t, const AdamStep& options) {
    const double g = gradient + options.weight_decay * parameter;
    m = options.beta1 * m + (1 - options.beta1) * g;
    v = options.beta2 * v + (1 - options.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(options.beta1, t));
    const double v_hat = v / (1 - std::pow(options.beta2, t));
    return parameter - options.lr * m_hat / (std::sqrt(v_hat) + options.epsilon);
  }
};

}  // namespace

TEMPLATE_TEST_CASE("adam: ten steps equal the published algorithm", "", float, double) {
  constexpr std::size_t kCount = 37;
  const auto backend = make_cpu_backend();
  for (const double weight_decay : {0.0, 5e-2}) {
    std::vector<TestType> parameter(kCount), gradient(kCount), m(kCount), v(kCount);
    const Dense start = random_dense(1, kCount, 1);
    Dense expected = start;
    std::vector<NaiveAdam> naive(kCount);
    for (std::size_t i = 0; i < kCount; ++i) parameter[i] = static_cast<TestType>(start.values[i]);
    for (int t = 1; t <= 10; ++t) {
      const Dense g = random_dense(1, kCount, 10 + static_cast<unsigned>(t));
      AdamStep step = {.dtype = DTypeOf<TestType>::value,
                       .count = kCount,
                       .parameter = parameter.data(),
                       .gradient = gradient.data(),
                       .m = m.data(),
                       .v = v.data(),
                       .step = t,
                       .lr = 0.03,
                       .weight_decay = weight_decay};
      for (std::size_t i = 0; i < kCount; ++i) {
        gradient[i] = static_cast<TestType>(g.values[i]);
        expected.values[i] = naive[i].step(expected.values[i], g.values[i], t, step);
      }
      backend->adam(step);
    }
    Dense actual(1, kCount);
    std::copy(parameter.begin(), parameter.end(), actual.values.begin());
    CHECK_CLOSE(actual, expected, 2 * tolerance<TestType>(100));
  }
}

TEST_CASE("adam: the first step moves by the learning rate against the gradient's sign") {
  float parameter[2] = {1, 1};
  const float gradient[2] = {1e-3F, -50};
  float m[2] = {};
  float v[2] = {};
  make_cpu_backend()->adam(
      {.count = 2, .parameter = parameter, .gradient = gradient, .m = m, .v = v, .lr = 0.25});
  CHECK(parameter[0] == Approx(0.75).epsilon(1e-4));
  CHECK(parameter[1] == Approx(1.25).epsilon(1e-4));
}

}  // namespace ooc::testing
