// The fields of a line of text.
//   - The separator is what the first line shows outside quotes: semicolon, comma, tab, or else
//     runs of blanks. Blanks around a field are no part of it.
//   - A field may stand in double quotes: then it may hold the separator, and "" is one quote. It
//     ends on its line.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace ooc {

// Separators that stand for runs of blanks, and for none: the line is one field, quotes and all.
inline constexpr char kBlankRuns = ' ';
inline constexpr char kWholeLine = '\n';

char find_separator(std::string_view line);

// One thread.
class TextFields {
 public:
  enum class Status { kOk, kOpenQuote, kTextAfterQuote };

  // Replaces the fields by those of `line`, which they point into.
  Status split(std::string_view line, char separator);

  std::size_t size() const { return fields_.size(); }
  std::string_view operator[](std::size_t i) const { return fields_[i]; }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  bool is_blank(char c) const { return c == ' ' || (c == '\t' && separator_ != '\t'); }
  std::size_t skip_blanks(std::size_t at) const;
  bool ends_field(std::size_t at) const;
  std::size_t take_quoted(std::size_t at);
  std::size_t take_plain(std::size_t at);

  std::string_view line_;
  char separator_ = ',';
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_;  // fields that held ""
};

// What is wrong with a line that split() refuses, and what to do.
std::string_view complaint_of(TextFields::Status status);
inline constexpr std::string_view kQuoteRemedy = "write a quote inside a quoted field twice";

}  // namespace ooc
