#include "storage/base/byte_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

namespace ooc {
namespace {

constexpr std::string_view kUnits = "KMGT";

}  // namespace

std::optional<std::int64_t> parse_byte_size(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  std::string unit(end, text.data() + text.size());
  if (!unit.empty() && unit.front() == ' ') unit.erase(0, 1);
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });

  double factor = 1;
  if (!unit.empty() && unit != "B") {
    const std::size_t exponent = kUnits.find(unit.front());
    const std::string_view rest = std::string_view(unit).substr(1);
    if (exponent == std::string_view::npos || !(rest.empty() || rest == "IB" || rest == "B")) {
      return std::nullopt;
    }
    factor = std::pow(rest == "B" ? 1000.0 : 1024.0, static_cast<double>(exponent + 1));
  }
  const double bytes = std::floor(value * factor);
  if (bytes >= 9223372036854775808.0) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

std::string format_byte_size(std::int64_t bytes) {
  double value = static_cast<double>(bytes);
  if (value < 1024) return fmt::format("{} B", bytes);
  std::size_t unit = 0;
  for (value /= 1024; value >= 1023.95 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::string number = fmt::format("{:.1f}", value);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return fmt::format("{} {}iB", number, kUnits[unit]);
}

}  // namespace ooc
