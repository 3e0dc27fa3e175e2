// Numbers as text, for the readers of .csv and .mtx.
#pragma once

#include <fast_float/fast_float.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ooc {

enum class Parse { kOk, kNotNumber, kNotInteger, kTooLarge };

// The whole of `field` as a number. Signs, exponents, nan and inf; True and False are 1 and 0. As
// integers, 1.0 and 2e3 count too.
Parse parse_field(std::string_view field, float& value);
Parse parse_field(std::string_view field, std::int64_t& value);

// 1 or 0 for the words True and False.
std::optional<int> parse_word(std::string_view field);

// "'x3' is not a number", for messages.
std::string describe(Parse status, std::string_view field);

// What nearly every field is: takes a plain number off the front of [at, end) and returns where it
// ends. Null where it takes parse_field() to tell, also for what is none.
inline const char* scan_number(const char* at, const char* end, std::int64_t& value) {
  constexpr std::ptrdiff_t kSafeDigits = 18;
  const bool negative = at != end && *at == '-';
  if (negative) ++at;
  const char* const first = at;
  std::uint64_t magnitude = 0;
  for (; at != end && static_cast<unsigned char>(*at - '0') < 10; ++at) {
    magnitude = magnitude * 10 + static_cast<std::uint64_t>(*at - '0');
  }
  if (at == first || at - first > kSafeDigits) return nullptr;
  value = negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
  return at;
}

inline const char* scan_number(const char* at, const char* end, float& value) {
  const auto [stop, status] = fast_float::from_chars(at, end, value);
  return status == std::errc() && std::isfinite(value) ? stop : nullptr;
}

}  // namespace ooc
