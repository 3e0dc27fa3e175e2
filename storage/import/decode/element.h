// Conversion of one stored element to the two types import works in: int64 for ids, labels and
// masks, fp32 for features. Shared by the arrays' readers.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

#include "storage/base/half.h"

namespace ooc {

template <class In>
bool is_nan(In value) {
  if constexpr (std::is_same_v<In, Half>) {
    return std::isnan(to_float(value));
  } else {
    return value != value;
  }
}

enum class Conversion { kOk, kNotInteger, kTooLarge };

// A floating-point value as an integer: only if it is one and fits.
template <std::floating_point In>
Conversion convert_element(In value, std::int64_t& out) {
  constexpr In kLimit = static_cast<In>(0x1p63);
  if (!(value == std::trunc(value)) || std::isinf(value)) return Conversion::kNotInteger;
  if (value < -kLimit || value >= kLimit) return Conversion::kTooLarge;
  out = static_cast<std::int64_t>(value);
  return Conversion::kOk;
}

template <std::integral In>
Conversion convert_element(In value, std::int64_t& out) {
  if constexpr (std::is_unsigned_v<In> && sizeof(In) == 8) {
    if (value > static_cast<In>(std::numeric_limits<std::int64_t>::max())) {
      return Conversion::kTooLarge;
    }
  }
  out = static_cast<std::int64_t>(value);
  return Conversion::kOk;
}

// A finite value must stay finite as fp32; NaN and infinities pass, for the caller to judge.
template <class In>
requires std::is_arithmetic_v<In> Conversion convert_element(In value, float& out) {
  out = static_cast<float>(value);
  if constexpr (std::is_same_v<In, double>) {
    if (std::isinf(out) && !std::isinf(value)) return Conversion::kTooLarge;
  }
  return Conversion::kOk;
}

template <class Out>
Conversion convert_element(Half value, Out& out) {
  return convert_element(to_float(value), out);
}

}  // namespace ooc
