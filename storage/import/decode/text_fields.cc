#include "storage/import/decode/text_fields.h"

#include <algorithm>

namespace ooc {

char find_separator(std::string_view line) {
  for (const char candidate : {';', ',', '\t'}) {
    bool quoted = false, field_begins = true;  // a quote opens a field at its begin only
    for (std::size_t at = 0; at < line.size(); ++at) {
      const char c = line[at];
      if (quoted) {
        if (c != '"') continue;
        quoted = line.substr(at + 1).starts_with('"');
        at += quoted ? 1 : 0;
        continue;
      }
      if (c == candidate) return candidate;
      quoted = c == '"' && field_begins;
      field_begins = c == ' ' || c == ';' || c == ',' || c == '\t';
    }
  }
  return kBlankRuns;
}

TextFields::Status TextFields::split(std::string_view line, char separator) {
  line_ = line;
  separator_ = separator;
  fields_.clear();
  unescaped_.clear();
  if (separator == kWholeLine) {
    fields_.push_back(line);
    return Status::kOk;
  }
  for (std::size_t at = 0;;) {
    at = skip_blanks(at);
    if (at < line.size() && line[at] == '"') {
      at = take_quoted(at + 1);
      if (at == std::string_view::npos) return Status::kOpenQuote;
      at = skip_blanks(at);
      if (at < line.size() && !ends_field(at)) return Status::kTextAfterQuote;
    } else {
      at = take_plain(at);
    }
    if (at >= line.size()) return Status::kOk;
    if (separator != kBlankRuns) ++at;
  }
}

std::size_t TextFields::skip_blanks(std::size_t at) const {
  while (at < line_.size() && is_blank(line_[at])) ++at;
  return at;
}

bool TextFields::ends_field(std::size_t at) const {
  return separator_ == kBlankRuns ? at > 0 && is_blank(line_[at - 1]) : line_[at] == separator_;
}

// From after the opening quote to after the closing one.
std::size_t TextFields::take_quoted(std::size_t at) {
  const std::size_t end = line_.find('"', at);
  if (end == std::string_view::npos) return end;
  if (!line_.substr(end + 1).starts_with('"')) {
    fields_.push_back(line_.substr(at, end - at));
    return end + 1;
  }
  std::string& field = unescaped_.emplace_back();
  for (; at < line_.size(); ++at) {
    if (line_[at] == '"') {
      if (at + 1 == line_.size() || line_[at + 1] != '"') {
        fields_.push_back(field);
        return at + 1;
      }
      ++at;
    }
    field += line_[at];
  }
  return std::string_view::npos;
}

std::size_t TextFields::take_plain(std::size_t at) {
  const std::size_t end =
      std::min(line_.size(), separator_ == kBlankRuns ? line_.find_first_of(" \t", at)
                                                      : line_.find(separator_, at));
  std::size_t last = end;
  while (last > at && is_blank(line_[last - 1])) --last;
  fields_.push_back(line_.substr(at, last - at));
  return end;
}

std::string_view complaint_of(TextFields::Status status) {
  return status == TextFields::Status::kOpenQuote ? "a double quote that is not closed on its line"
                                                  : "text after a closing double quote";
}

}  // namespace ooc
