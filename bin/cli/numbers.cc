#include "bin/cli/numbers.h"

#include <cctype>
#include <charconv>
#include <cmath>

#include "storage/base/byte_size.h"

namespace ooc::cli {

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::int64_t credible_size(std::string_view text) {
  constexpr std::int64_t kCredibleBytes = 1 << 20;
  const std::int64_t size = parse_byte_size(text).value_or(0);
  const bool has_unit = !text.empty() && std::isalpha(static_cast<unsigned char>(text.back()));
  return has_unit || size >= kCredibleBytes ? size : 0;
}

}  // namespace ooc::cli
