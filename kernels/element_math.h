// The maths of one element, shared by CPU and CUDA kernels. T is float or double.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/host_device.h"

namespace ooc {

// `x < 0` rather than `x > 0`: a NaN must reach the loss, where training stops with an error.
template <class T>
OOC_HOST_DEVICE inline T relu(T x) {
  return x < T{0} ? T{0} : x;
}

template <class T>
OOC_HOST_DEVICE inline T relu_gradient(T g, T y) {
  return y > T{0} ? g : T{0};
}

// e^x for x <= 0 (a logit less the row's largest), in a form that vectorises. Within 2 ulp; 0 below
// the smallest normal number. After Cephes' expf.
OOC_HOST_DEVICE inline float exp_nonpositive(float x) {
  constexpr float kLowest = -87.3f;
  constexpr float kLog2e = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: the sum's low bits are the rounded integer
  const float clamped = x < kLowest ? kLowest : x;
  const float shifted = clamped * kLog2e + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  const auto exponent = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound);
  const float scale = std::bit_cast<float>((exponent + 127) << 23);
  return x < kLowest ? 0.0f : p * scale;
}

OOC_HOST_DEVICE inline double exp_nonpositive(double x) { return std::exp(x); }

template <class T>
OOC_HOST_DEVICE inline T normalize(T x, T mean, T scale, T shift) {
  return (x - mean) * scale + shift;
}

// invstd = 1 / sqrt(variance + epsilon)
OOC_HOST_DEVICE inline double inverse_std(double variance, double epsilon) {
  return 1.0 / std::sqrt((variance > 0 ? variance : 0) + epsilon);
}

// The input gradient of a normalisation: `g` is the gradient of xhat (the output's gradient times
// gamma), the means are those of g and of g * xhat over what was normalised.
template <class T>
OOC_HOST_DEVICE inline T normalize_gradient(T g, T xhat, T mean_g, T mean_gx, T invstd) {
  return invstd * (g - mean_g - xhat * mean_gx);
}

// One element of Adam (Kingma and Ba 2015, with PyTorch's order of operations): step_size =
// lr / (1 - beta1^t), root = sqrt(1 - beta2^t).
template <class T>
struct AdamScalars {
  T step_size, root, beta1, beta2, epsilon, weight_decay;
};

template <class T>
OOC_HOST_DEVICE inline void adam_element(T& parameter, T gradient, T& m, T& v,
                                         const AdamScalars<T>& s) {
  const T g = gradient + s.weight_decay * parameter;
  m = s.beta1 * m + (T{1} - s.beta1) * g;
  v = s.beta2 * v + (T{1} - s.beta2) * g * g;
  parameter -= s.step_size * m / (std::sqrt(v) / s.root + s.epsilon);
}

}  // namespace ooc
