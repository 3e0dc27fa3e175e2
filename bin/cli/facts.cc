#include "bin/cli/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "storage/base/byte_size.h"
#include "storage/base/json_text.h"

namespace ooc::cli {
namespace {

std::string with_separators(std::int64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const bool after_digit = i > 0 && digits[i - 1] != '-';
    if (after_digit && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

bool is_size(const std::string& name) {
  return name.ends_with("_bytes") || name.starts_with("bytes_");
}

std::string value_text(const Facts& value, bool size) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number() && size) return format_byte_size(value.get<std::int64_t>());
  if (value.is_number_integer()) return with_separators(value.get<std::int64_t>());
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return json_text(value);
}

void append_text(const Facts& facts, std::size_t indent, bool sizes, std::string& text) {
  std::size_t width = 0;
  for (const auto& [name, value] : facts.items()) width = std::max(width, name.size());
  for (const auto& [name, value] : facts.items()) {
    if (value.is_null() || ((value.is_object() || value.is_array()) && value.empty())) continue;
    if (value.is_object()) {
      text += fmt::format("{:{}}{}\n", "", indent, name);
      append_text(value, indent + 2, is_size(name), text);
    } else {
      text += fmt::format("{:{}}{:{}}  {}\n", "", indent, name, width,
                          value_text(value, sizes || is_size(name)));
    }
  }
}

}  // namespace

std::string facts_to_text(const Facts& facts) {
  std::string text;
  append_text(facts, 0, false, text);
  return text;
}

void print_facts(const Facts& facts, bool json) {
  std::fputs((json ? json_text(facts, 2) + "\n" : facts_to_text(facts)).c_str(), stdout);
}

}  // namespace ooc::cli
