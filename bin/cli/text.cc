#include "bin/cli/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace ooc::cli {
namespace {

// Bytes of the UTF-8 sequence that `text` begins with; 0 if it begins with none.
std::size_t sequence_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t bytes = first < 0x80   ? 1
                            : first < 0xC2 ? 0
                            : first < 0xE0 ? 2
                            : first < 0xF0 ? 3
                            : first < 0xF5 ? 4
                                           : 0;
  if (bytes > text.size()) return 0;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  const bool whole = std::all_of(
      text.begin() + 1,
      text.begin() + std::max<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(bytes)), continues);
  return whole ? bytes : 0;
}

}  // namespace

std::string join_alternatives(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<long long>(std::max(0.0, seconds) + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string printable(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t bytes = sequence_bytes(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (bytes == 0) {
      line += '?';
    } else if (first < 0x20 || first == 0x7F) {
      line += ' ';
    } else {
      line += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<std::size_t>(1, bytes));
  }
  return line;
}

}  // namespace ooc::cli
