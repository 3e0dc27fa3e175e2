// What degree_factor (kernels/spec/row_kernels.h) makes of a vertex's degrees, of CPU and CUDA
// kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/spec/host_device.h"
#include "kernels/spec/row_kernels.h"

namespace ooc {

// `loops`: self loops in the data.
OOC_HOST_DEVICE inline double degree_factor_of(DegreeFactor factor, std::int64_t in,
                                               std::int64_t out, std::int64_t loops) {
  const std::int64_t least_one = loops > 1 ? loops : 1;
  const auto inverse = [](std::int64_t count) {
    return count > 0 ? 1.0 / static_cast<double>(count) : 0.0;
  };
  switch (factor) {
    case DegreeFactor::kIn:
      return 1 / std::sqrt(static_cast<double>(in + least_one));
    case DegreeFactor::kOut:
      return 1 / std::sqrt(static_cast<double>(out + least_one));
    case DegreeFactor::kInverseIn:
      return inverse(in + loops);
    case DegreeFactor::kInverseInWithLoops:
      return inverse(in + least_one);
    case DegreeFactor::kLoop:
      return static_cast<double>(1 - loops);
  }
  return 0;
}

}  // namespace ooc
