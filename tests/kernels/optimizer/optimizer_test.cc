#include "tests/kernels/run_kernel.h"

namespace ooc::testing {
namespace {

// Adam as published: bias-corrected moments first, then the step.
struct NaiveAdam {
  double m = 0;
  double v = 0;
  double step(double parameter, double gradient, int t, const OptimizerStep& options) {
    const double g = gradient + options.weight_decay * parameter;
    m = options.beta1 * m + (1 - options.beta1) * g;
    v = options.beta2 * v + (1 - options.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(options.beta1, t));
    const double v_hat = v / (1 - std::pow(options.beta2, t));
    return parameter - options.lr * m_hat / (std::sqrt(v_hat) + options.epsilon);
  }
};

// AdamW: the parameter decays first, then Adam without weight decay.
struct NaiveAdamW {
  NaiveAdam adam;
  double step(double parameter, double gradient, int t, OptimizerStep options) {
    const double decayed = parameter - options.lr * options.weight_decay * parameter;
    options.weight_decay = 0;
    return adam.step(decayed, gradient, t, options);
  }
};

// torch.optim.SGD from its documentation, dampening 0: the first buffer is the gradient.
struct NaiveSgd {
  double buffer = 0;
  double step(double parameter, double gradient, int t, const OptimizerStep& options) {
    const double g = gradient + options.weight_decay * parameter;
    if (options.momentum == 0) return parameter - options.lr * g;
    buffer = t == 1 ? g : options.momentum * buffer + g;
    return parameter - options.lr * buffer;
  }
};

// Ten steps of the backend and of the formula, from the same start.
template <class T, class Naive>
void check_ten_steps(const OptimizerStep& options) {
  constexpr std::size_t kCount = 37;
  const auto backend = make_cpu_backend();
  std::vector<T> parameter(kCount), gradient(kCount), m(kCount), v(kCount);
  Dense expected = random_dense(1, kCount, 1);
  std::vector<Naive> naive(kCount);
  for (std::size_t i = 0; i < kCount; ++i) parameter[i] = static_cast<T>(expected.values[i]);
  for (int t = 1; t <= 10; ++t) {
    const Dense g = random_dense(1, kCount, 10 + static_cast<unsigned>(t));
    OptimizerStep step = options;
    step.dtype = DTypeOf<T>::value;
    step.count = kCount;
    step.parameter = parameter.data();
    step.gradient = gradient.data();
    step.m = m.data();
    step.v = options.kind == OptimizerKind::kSgd ? nullptr : v.data();
    step.step = t;
    for (std::size_t i = 0; i < kCount; ++i) {
      gradient[i] = static_cast<T>(g.values[i]);
      expected.values[i] = naive[i].step(expected.values[i], g.values[i], t, step);
    }
    backend->optimize(step);
  }
  Dense actual(1, kCount);
  std::copy(parameter.begin(), parameter.end(), actual.values.begin());
  CHECK_CLOSE(actual, expected, 2 * tolerance<T>(100));
}

}  // namespace

TEMPLATE_TEST_CASE("optimizer: ten steps equal the published algorithms", "", float, double) {
  for (const double weight_decay : {0.0, 5e-2}) {
    INFO("weight decay " << weight_decay);
    check_ten_steps<TestType, NaiveAdam>({.lr = 0.03, .weight_decay = weight_decay});
    check_ten_steps<TestType, NaiveAdamW>(
        {.kind = OptimizerKind::kAdamW, .lr = 0.03, .weight_decay = weight_decay});
    for (const double momentum : {0.0, 0.9}) {
      INFO("momentum " << momentum);
      check_ten_steps<TestType, NaiveSgd>({.kind = OptimizerKind::kSgd,
                                           .lr = 0.03,
                                           .weight_decay = weight_decay,
                                           .momentum = momentum});
    }
  }
}

TEST_CASE("adam: the first step moves by the learning rate against the gradient's sign") {
  float parameter[2] = {1, 1};
  const float gradient[2] = {1e-3F, -50};
  float m[2] = {};
  float v[2] = {};
  make_cpu_backend()->optimize(
      {.count = 2, .parameter = parameter, .gradient = gradient, .m = m, .v = v, .lr = 0.25});
  CHECK(parameter[0] == Approx(0.75).epsilon(1e-4));
  CHECK(parameter[1] == Approx(1.25).epsilon(1e-4));
}

}  // namespace ooc::testing
