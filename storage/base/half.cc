#include "storage/base/half.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::size_t kStep = 1024;  // elements between two looks for an overflow

Half to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {  // NaN
    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520 and above
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    // Below 2^-14, where halves are multiples of 2^-24, as floats from 0.5 on are: adding rounds.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    half = (magnitude + 0xfffu + odd - ((127u - 15u) << 23)) >> 13;
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded)};
}

// The compiler makes vectors of this loop for bf16; fp16 has instructions of its own.
template <class In, class Out>
void widen_array(const In* in, Out* out, std::size_t count) {
  std::size_t i = 0;
#ifdef __F16C__
  if constexpr (std::is_same_v<In, Half> && std::is_same_v<Out, float>) {
    for (; i + 8 <= count; i += 8) {
      const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
      _mm256_storeu_ps(out + i, _mm256_cvtph_ps(halves));
    }
  }
#endif
  for (; i < count; ++i) {
    if constexpr (std::is_same_v<In, float>) {
      out[i] = in[i];
    } else {
      out[i] = to_float(in[i]);
    }
  }
}

void narrow_array(const float* in, Half* out, std::size_t count) {
  std::size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), halves);
  }
#endif
  for (; i < count; ++i) out[i] = to_half(in[i]);
}

void narrow_array(const float* in, BFloat16* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = to_bfloat16(in[i]);
}

template <class Out>
std::optional<std::size_t> narrow_checked(const float* in, Out* out, std::size_t count,
                                          std::uint32_t infinity) {
  std::optional<std::size_t> first;
  for (std::size_t begin = 0; begin < count; begin += kStep) {
    const std::size_t end = std::min(begin + kStep, count);
    narrow_array(in + begin, out + begin, end - begin);
    if (first) continue;
    const auto overflowed = [&](std::size_t i) {
      return static_cast<std::uint32_t>((out[i].bits & 0x7fffu) == infinity) &
             static_cast<std::uint32_t>(std::abs(in[i]) <= std::numeric_limits<float>::max());
    };
    std::uint32_t any = 0;
    for (std::size_t i = begin; i < end; ++i) any |= overflowed(i);
    for (std::size_t i = begin; any != 0 && !first && i < end; ++i) {
      if (overflowed(i) != 0) first = i;
    }
  }
  return first;
}

template <class Out>
void widen_to(DType from, const void* in, Out* out, std::size_t count) {
  switch (from) {
    case DType::kF32:
      return widen_array(static_cast<const float*>(in), out, count);
    case DType::kF16:
      return widen_array(static_cast<const Half*>(in), out, count);
    case DType::kBF16:
      return widen_array(static_cast<const BFloat16*>(in), out, count);
    default:
      OOC_CHECK(is_feature_dtype(from));
  }
}

}  // namespace

void widen(DType from, const void* in, DType to, void* out, std::size_t count) {
  OOC_CHECK(to == DType::kF32 || to == DType::kF64);
  if (to == DType::kF32) {
    widen_to(from, in, static_cast<float*>(out), count);
  } else {
    widen_to(from, in, static_cast<double*>(out), count);
  }
}

std::optional<std::size_t> narrow(const float* in, DType to, void* out, std::size_t count) {
  OOC_CHECK(is_feature_dtype(to));
  if (to == DType::kF16) return narrow_checked(in, static_cast<Half*>(out), count, 0x7c00u);
  if (to == DType::kBF16) return narrow_checked(in, static_cast<BFloat16*>(out), count, 0x7f80u);
  if (count > 0) std::memcpy(out, in, count * sizeof(float));
  return std::nullopt;
}

}  // namespace ooc
