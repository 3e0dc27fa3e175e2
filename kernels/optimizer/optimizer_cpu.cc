#include "kernels/optimizer/optimizer_cpu.h"

#include <cmath>

#include "kernels/spec/element_math.h"
#include "storage/base/errors.h"

namespace ooc::cpu {
namespace {

template <class T>
void adam(const OptimizerStep& step) {
  const auto t = static_cast<double>(step.step);
  const bool decoupled = step.kind == OptimizerKind::kAdamW;
  const AdamScalars<T> scalars = {
      .step_size = static_cast<T>(step.lr / (1.0 - std::pow(step.beta1, t))),
      .root = static_cast<T>(std::sqrt(1.0 - std::pow(step.beta2, t))),
      .beta1 = static_cast<T>(step.beta1),
      .beta2 = static_cast<T>(step.beta2),
      .epsilon = static_cast<T>(step.epsilon),
      .weight_decay = static_cast<T>(decoupled ? 0.0 : step.weight_decay),
      .keep = static_cast<T>(decoupled ? 1.0 - step.lr * step.weight_decay : 1.0)};
  auto* __restrict parameter = static_cast<T*>(step.parameter);
  const auto* __restrict gradient = static_cast<const T*>(step.gradient);
  auto* __restrict m = static_cast<T*>(step.m);
  auto* __restrict v = static_cast<T*>(step.v);
  for (std::int64_t i = 0; i < step.count; ++i) {
    adam_element(parameter[i], gradient[i], m[i], v[i], scalars);
  }
}

template <class T>
void sgd(const OptimizerStep& step) {
  const auto lr = static_cast<T>(step.lr);
  const auto momentum = static_cast<T>(step.momentum);
  const auto weight_decay = static_cast<T>(step.weight_decay);
  auto* __restrict parameter = static_cast<T*>(step.parameter);
  const auto* __restrict gradient = static_cast<const T*>(step.gradient);
  auto* __restrict m = static_cast<T*>(step.m);
  for (std::int64_t i = 0; i < step.count; ++i) {
    m[i] = momentum * m[i] + (gradient[i] + weight_decay * parameter[i]);
    parameter[i] -= lr * m[i];
  }
}

template <class T>
void optimize_elements(const OptimizerStep& step) {
  if (step.kind == OptimizerKind::kSgd) return sgd<T>(step);
  adam<T>(step);
}

}  // namespace

void optimize(const OptimizerStep& step) {
  OOC_CHECK(step.step >= 1);
  OOC_CHECK(step.dtype == DType::kF32 || step.dtype == DType::kF64);
  if (step.dtype == DType::kF32) {
    optimize_elements<float>(step);
  } else {
    optimize_elements<double>(step);
  }
}

}  // namespace ooc::cpu
