// Central differences in double through the shipped kernels.
#pragma once

#include "tests/kernels/run_kernel.h"

namespace ooc::testing {

// d f(x) / dx for every element of x, where f returns a scalar.
inline Dense numeric_gradient(Dense x, const std::function<double(const Dense&)>& f) {
  constexpr double kStep = 1e-5;
  Dense gradient(x.rows, x.cols);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double value = x.values[i];
    x.values[i] = value + kStep;
    const double above = f(x);
    x.values[i] = value - kStep;
    const double below = f(x);
    x.values[i] = value;
    gradient.values[i] = (above - below) / (2 * kStep);
  }
  return gradient;
}

// The scalar a test differentiates: <g, y>, so that g is y's gradient.
inline double inner_product(const Dense& g, const Dense& y) {
  double sum = 0;
  for (std::size_t i = 0; i < y.values.size(); ++i) sum += g.values[i] * y.values[i];
  return sum;
}

inline constexpr double kDifferenceTolerance = 1e-7;

}  // namespace ooc::testing
