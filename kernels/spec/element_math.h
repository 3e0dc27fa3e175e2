// The maths of one element, shared by CPU and CUDA kernels. T is float or double.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/spec/host_device.h"

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

// The exponentials below are in a form that vectorises (double: the standard functions), after
// Cephes' expf: e^x = (1 + q) 2^n with |q| < 0.42, for -110 < x < 90.
struct ExpParts {
  float q = 0;
  std::int32_t n = 0;
};

OOC_HOST_DEVICE inline ExpParts exp_parts(float x) {
  constexpr float kLog2e = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: the sum's low bits are the rounded integer
  const float shifted = x * kLog2e + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return {(p * r) * r + r,
          std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound)};
}

// 2^n for -127 < n < 128. Of garbage (the n of a NaN) it is anything. Shifted without a sign.
OOC_HOST_DEVICE inline float power_of_two(std::int32_t n) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23);
}

inline constexpr float kLowestExponent = -87.3f;  // e to it is the smallest normal number

// e^x for x <= 0 (a logit less the row's largest). Within 2 ulp; 0 below the smallest normal
// number.
OOC_HOST_DEVICE inline float exp_nonpositive(float x) {
  const ExpParts parts = exp_parts(x < kLowestExponent ? kLowestExponent : x);
  return x < kLowestExponent ? 0.0f : (parts.q + 1.0f) * power_of_two(parts.n);
}

OOC_HOST_DEVICE inline double exp_nonpositive(double x) { return std::exp(x); }

// e^x for any x, subnormal results and infinity included. Within 2 ulp.
OOC_HOST_DEVICE inline float exponential(float x) {
  constexpr float kLowest = -104.0f;  // rounds to 0
  constexpr float kHighest = 89.0f;   // rounds to infinity
  const ExpParts parts = exp_parts(x < kLowest ? kLowest : (x > kHighest ? kHighest : x));
  const std::int32_t half = parts.n >> 1;  // 2^n itself may be out of range
  return ((parts.q + 1.0f) * power_of_two(half)) * power_of_two(parts.n - half);
}

OOC_HOST_DEVICE inline double exponential(double x) { return std::exp(x); }

// e^x - 1 for x <= 0. Within 2 ulp, of tiny results too.
OOC_HOST_DEVICE inline float expm1_nonpositive(float x) {
  const ExpParts parts = exp_parts(x < kLowestExponent ? kLowestExponent : x);
  const float scale = power_of_two(parts.n);
  return parts.q * scale + (scale - 1.0f);
}

OOC_HOST_DEVICE inline double expm1_nonpositive(double x) { return std::expm1(x); }

// 1 / (1 + e^-x). Within 3 ulp; 0 below the smallest normal number.
template <class T>
OOC_HOST_DEVICE inline T sigmoid(T x) {
  const T e = exp_nonpositive(-std::abs(x));
  const T r = T{1} / (T{1} + e);
  return x < T{0} ? e * r : r;
}

template <class T>
OOC_HOST_DEVICE inline T sigmoid_gradient(T g, T y) {
  return g * (y * (T{1} - y));
}

// Within 3 ulp, of tiny results too.
template <class T>
OOC_HOST_DEVICE inline T hyperbolic_tangent(T x) {
  const T q = expm1_nonpositive(T{-2} * std::abs(x));
  return std::copysign(q / (q + T{2}), x);
}

template <class T>
OOC_HOST_DEVICE inline T tanh_gradient(T g, T y) {
  return g * (T{1} - y * y);
}

template <class T>
OOC_HOST_DEVICE inline T leaky_relu(T x, T slope) {
  return x < T{0} ? slope * x : x;
}

template <class T>
OOC_HOST_DEVICE inline T leaky_relu_gradient(T g, T y, T slope) {
  return y > T{0} ? g : slope * g;
}

// x where positive, e^x - 1 elsewhere. Within 2 ulp.
template <class T>
OOC_HOST_DEVICE inline T elu(T x) {
  const T negative = expm1_nonpositive(x > T{0} ? T{0} : x);
  return x > T{0} ? x : negative;
}

template <class T>
OOC_HOST_DEVICE inline T elu_gradient(T g, T y) {
  return y > T{0} ? g : g * (y + T{1});
}

// e^(-x^2/2)
template <class T>
OOC_HOST_DEVICE inline T bell(T x) {
  return exp_nonpositive(T{-0.5} * x * x);
}

// The standard normal distribution function, given bell(x): that times a polynomial fitted to the
// scaled complementary error function. Within 2e-7, and within 1e-5 of itself down to x = -13.
OOC_HOST_DEVICE inline float normal_cdf(float x, float bell_of_x) {
  const float t = 1.0f / (1.0f + 0.353553391f * std::abs(x));
  float p = 1.353464915e-2f;
  p = p * t - 1.296140478e-1f;
  p = p * t + 4.428111325e-1f;
  p = p * t - 6.870457958e-1f;
  p = p * t + 4.341518783e-1f;
  p = p * t - 1.045284798e-1f;
  p = p * t + 2.274455202e-1f;
  p = p * t + 2.382882296e-1f;
  p = p * t + 2.828940154e-1f;
  p = p * t + 2.820628826e-1f;
  const float tail = (0.5f * t) * p * bell_of_x;
  return x < 0.0f ? tail : 1.0f - tail;
}

OOC_HOST_DEVICE inline double normal_cdf(double x, double) {
  return 0.5 * std::erfc(-x * 0.70710678118654752440);
}

// x times the normal distribution function: GELU in its form with erf.
template <class T>
OOC_HOST_DEVICE inline T gelu(T x) {
  return x * normal_cdf(x, bell(x));
}

template <class T>
OOC_HOST_DEVICE inline T gelu_gradient(T g, T x) {
  constexpr T kDensityAtZero = static_cast<T>(0.39894228040143267794);
  const T e = bell(x);
  return g * (normal_cdf(x, e) + x * (kDensityAtZero * e));
}

// The larger one; a NaN of either is kept.
template <class T>
OOC_HOST_DEVICE inline T maximum(T a, T b) {
  return a >= b || a != a ? a : b;
}

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
// lr / (1 - beta1^t), root = sqrt(1 - beta2^t), keep: what decoupled weight decay leaves.
template <class T>
struct AdamScalars {
  T step_size, root, beta1, beta2, epsilon, weight_decay, keep;
};

template <class T>
OOC_HOST_DEVICE inline void adam_element(T& parameter, T gradient, T& m, T& v,
                                         const AdamScalars<T>& s) {
  const T g = gradient + s.weight_decay * parameter;
  m = s.beta1 * m + (T{1} - s.beta1) * g;
  v = s.beta2 * v + (T{1} - s.beta2) * g * g;
  parameter = s.keep * parameter - s.step_size * m / (std::sqrt(v) / s.root + s.epsilon);
}

// The loss of a value, d away from its label.
enum class ValueLoss {
  kSquared,   // d^2
  kAbsolute,  // |d|
  kHuber,     // d^2 / 2 up to |d| = 1, then |d| - 1 / 2
};

OOC_HOST_DEVICE inline double loss_of_value(ValueLoss loss, double d) {
  const double size = std::abs(d);
  if (loss == ValueLoss::kSquared) return d * d;
  if (loss == ValueLoss::kAbsolute) return size;
  return size > 1 ? size - 0.5 : 0.5 * d * d;
}

// Its derivative by d; of |d| 0 where d is 0.
OOC_HOST_DEVICE inline double loss_slope(ValueLoss loss, double d) {
  if (loss == ValueLoss::kSquared) return 2 * d;
  const double sign = d > 0 ? 1 : (d < 0 ? -1 : d);  // NaN stays NaN
  return loss == ValueLoss::kHuber && std::abs(d) <= 1 ? d : sign;
}

}  // namespace ooc
