#include "kernels/optimizer_cpu.h"

#include <cmath>

#include "kernels/element_math.h"
#include "storage/errors.h"

namespace ooc::cpu {
namespace {

template <class T>
void adam_elements(const AdamStep& step) {
  const auto t = static_cast<double>(step.step);
  const AdamScalars<T> scalars = {
      .step_size = static_cast<T>(step.lr / (1.0 - std::pow(step.beta1, t))),
      .root = static_cast<T>(std::sqrt(1.0 - std::pow(step.beta2, t))),
      .beta1 = static_cast<T>(step.beta1),
      .beta2 = static_cast<T>(step.beta2),
      .epsilon = static_cast<T>(step.epsilon),
      .weight_decay = static_cast<T>(step.weight_decay)};
  auto* __restrict parameter = static_cast<T*>(step.parameter);
  const auto* __restrict gradient = static_cast<const T*>(step.gradient);
  auto* __restrict m = static_cast<T*>(step.m);
  auto* __restrict v = static_cast<T*>(step.v);
  for (std::int64_t i = 0; i < step.count; ++i) {
    adam_element(parameter[i], gradient[i], m[i], v[i], scalars);
  }
}

}  // namespace

void adam(const AdamStep& step) {
  OOC_CHECK(step.step >= 1);
  OOC_CHECK(step.dtype == DType::kF32 || step.dtype == DType::kF64);
  if (step.dtype == DType::kF32) {
    adam_elements<float>(step);
  } else {
    adam_elements<double>(step);
  }
}

}  // namespace ooc::cpu
