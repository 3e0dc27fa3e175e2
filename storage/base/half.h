// 16-bit floating point, as features may be stored: fp16 (IEEE 754 binary16, NumPy's float16) and
// bf16 (the upper half of fp32). To 16 bits rounds to nearest, ties to even; values too large
// become infinite, NaN stays NaN (quiet). The way back is exact.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "storage/base/types.h"

namespace ooc {

struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::kF16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBF16;
};

constexpr float to_float(Half half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (half.bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = half.bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign == 0 ? magnitude : -magnitude;
  }
  if (exponent == 31) {
    const std::uint32_t high = mantissa == 0 ? 0x7f800000u : 0x7fc00000u;
    return std::bit_cast<float>(sign | high | (mantissa << 13));
  }
  return std::bit_cast<float>(sign | (exponent + (127 - 15)) << 23 | (mantissa << 13));
}

constexpr float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

// Whether features of this type can be stored: fp32, fp16, bf16.
constexpr bool is_feature_dtype(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// `count` elements of a feature dtype to fp32 or fp64 (`to`), which the arrays are of.
void widen(DType from, const void* in, DType to, void* out, std::size_t count);

// fp32 to a feature dtype. Returns the index of the first finite value that became infinite, which
// is more than the type can hold; everything is converted all the same.
std::optional<std::size_t> narrow(const float* in, DType to, void* out, std::size_t count);

}  // namespace ooc
