// What a step of an optimiser computes.
#pragma once

#include <cstdint>

#include "storage/base/types.h"

namespace ooc {

enum class OptimizerKind {
  kAdam,   // Kingma and Ba 2015, weight decay added to the gradient
  kAdamW,  // Loshchilov and Hutter 2019: decoupled weight decay, parameter *= 1 - lr weight_decay
  kSgd,    // m = momentum m + g, parameter -= lr m; weight decay added to the gradient
};

// One step of an optimiser, by PyTorch's rules. g = gradient (+ weight_decay * parameter); m, v:
// the moments, zero before the first step; `step` counts from 1. SGD leaves v alone, it may be
// null.
struct OptimizerStep {
  OptimizerKind kind = OptimizerKind::kAdam;
  DType dtype = DType::kF32;  // of all four arrays
  std::int64_t count = 0;     // elements
  void* parameter = nullptr;
  const void* gradient = nullptr;
  void* m = nullptr;
  void* v = nullptr;
  std::int64_t step = 1;
  double lr = 0.01;
  double weight_decay = 0;
  double momentum = 0;  // of SGD
  double beta1 = 0.9;   // of Adam and AdamW, as the next two
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

}  // namespace ooc
