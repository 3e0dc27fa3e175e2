#include "storage/import/decode/number_text.h"

#include <fmt/format.h>

#include <charconv>

#include "storage/import/decode/element.h"

namespace ooc {
namespace {

// The digits without a leading '+', which from_chars does not take.
std::string_view digits_of(std::string_view field) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  return field;
}

template <class Float>
Parse parse_float(std::string_view field, Float& value) {
  field = digits_of(field);
  const char* const end = field.data() + field.size();
  const auto [stop, status] = fast_float::from_chars(field.data(), end, value);
  if (status != std::errc() || stop != end) return Parse::kNotNumber;
  // fast_float gives infinity for what is too large; only letters spell it on purpose.
  const bool spelled = field.find_first_of("nN") != std::string_view::npos;
  return std::isinf(value) && !spelled ? Parse::kTooLarge : Parse::kOk;
}

}  // namespace

std::optional<int> parse_word(std::string_view field) {
  if (field == "True" || field == "true" || field == "TRUE") return 1;
  if (field == "False" || field == "false" || field == "FALSE") return 0;
  return std::nullopt;
}

Parse parse_field(std::string_view field, float& value) {
  const Parse status = parse_float(field, value);
  if (status != Parse::kNotNumber) return status;
  const auto word = parse_word(field);
  if (word) value = static_cast<float>(*word);
  return word ? Parse::kOk : Parse::kNotNumber;
}

Parse parse_field(std::string_view field, std::int64_t& value) {
  const std::string_view digits = digits_of(field);
  const char* const end = digits.data() + digits.size();
  const auto [stop, status] = std::from_chars(digits.data(), end, value);
  if (stop == end && status == std::errc()) return Parse::kOk;
  if (stop == end && status == std::errc::result_out_of_range) return Parse::kTooLarge;
  double wide = 0;
  const Parse parsed = parse_float(field, wide);
  if (parsed == Parse::kOk) {
    switch (convert_element(wide, value)) {
      case Conversion::kOk:
        return Parse::kOk;
      case Conversion::kNotInteger:
        return Parse::kNotInteger;
      case Conversion::kTooLarge:
        return Parse::kTooLarge;
    }
  }
  if (parsed == Parse::kTooLarge) return parsed;
  const auto word = parse_word(field);
  if (word) value = *word;
  return word ? Parse::kOk : Parse::kNotNumber;
}

std::string describe(Parse status, std::string_view field) {
  return fmt::format("'{}' {}", field.substr(0, 40),
                     status == Parse::kNotNumber    ? "is not a number"
                     : status == Parse::kNotInteger ? "is not an integer"
                                                    : "is out of range");
}

}  // namespace ooc
