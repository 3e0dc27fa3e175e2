// What an optimiser's step does to one element, and the numbers that it needs for it, of CPU and
// CUDA kernels.
#pragma once

#include <cmath>

#include "kernels/spec/element_math.h"
#include "kernels/spec/optimizer.h"

namespace ooc {

template <class T>
AdamScalars<T> adam_scalars(const OptimizerStep& step) {
  const auto t = static_cast<double>(step.step);
  const bool decoupled = step.kind == OptimizerKind::kAdamW;
  return {.step_size = static_cast<T>(step.lr / (1.0 - std::pow(step.beta1, t))),
          .root = static_cast<T>(std::sqrt(1.0 - std::pow(step.beta2, t))),
          .beta1 = static_cast<T>(step.beta1),
          .beta2 = static_cast<T>(step.beta2),
          .epsilon = static_cast<T>(step.epsilon),
          .weight_decay = static_cast<T>(decoupled ? 0.0 : step.weight_decay),
          .keep = static_cast<T>(decoupled ? 1.0 - step.lr * step.weight_decay : 1.0)};
}

template <class T>
struct SgdScalars {
  T lr, momentum, weight_decay;
};

template <class T>
SgdScalars<T> sgd_scalars(const OptimizerStep& step) {
  return {static_cast<T>(step.lr), static_cast<T>(step.momentum),
          static_cast<T>(step.weight_decay)};
}

template <class T>
OOC_HOST_DEVICE inline void sgd_element(T& parameter, T gradient, T& m, const SgdScalars<T>& s) {
  m = s.momentum * m + (gradient + s.weight_decay * parameter);
  parameter -= s.lr * m;
}

}  // namespace ooc
