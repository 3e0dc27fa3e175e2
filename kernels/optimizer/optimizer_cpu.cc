#include "kernels/optimizer/optimizer_cpu.h"

#include "kernels/optimizer/optimizer_scalars.h"
#include "storage/base/errors.h"

namespace ooc::cpu {
namespace {

template <class T>
void adam(const OptimizerStep& step) {
  const AdamScalars<T> scalars = adam_scalars<T>(step);
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
  const SgdScalars<T> scalars = sgd_scalars<T>(step);
  auto* __restrict parameter = static_cast<T*>(step.parameter);
  const auto* __restrict gradient = static_cast<const T*>(step.gradient);
  auto* __restrict m = static_cast<T*>(step.m);
  for (std::int64_t i = 0; i < step.count; ++i) {
    sgd_element(parameter[i], gradient[i], m[i], scalars);
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
