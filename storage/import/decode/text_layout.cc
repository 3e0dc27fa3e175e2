#include "storage/import/decode/text_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "storage/base/errors.h"
#include "storage/import/decode/number_text.h"
#include "storage/import/decode/text_fields.h"

namespace ooc {
namespace {

constexpr std::array<std::string_view, 6> kEnds = {".csv",    ".tsv",    ".txt",
                                                   ".csv.gz", ".tsv.gz", ".txt.gz"};
constexpr int kLinesLookedAt = 16;

constexpr std::array<std::string_view, 6> kIds = {"id",    "ids",    "node",
                                                  "nodes", "vertex", "vertices"};
constexpr std::array<std::string_view, 6> kLabels = {"label",   "labels",   "class",
                                                     "classes", "category", "y"};
constexpr std::array<std::string_view, 10> kMissing = {"nan", "NaN", "NAN",  "na",   "NA",
                                                       "n/a", "N/A", "null", "NULL", "<NA>"};
constexpr std::array<std::string_view, 4> kSources = {"source", "src", "from", "sender"};
constexpr std::array<std::string_view, 6> kDestinations = {"target",      "dst", "dest",
                                                           "destination", "to",  "receiver"};

bool is_among(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "srcAccount" and "src_account" are "src" and "account"; empty where there are other signs.
std::vector<std::string> words_of(std::string_view field) {
  std::vector<std::string> words(1);
  bool lower_before = false;
  for (const char c : field) {
    const bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
    if (!upper && !lower && c != '_' && c != ' ' && c != '-') return {};
    if ((upper && lower_before) || (!upper && !lower)) words.emplace_back();
    if (upper || lower) words.back() += static_cast<char>(upper ? c + 32 : c);
    lower_before = lower;
  }
  std::erase(words, "");
  return words;
}

bool is_usual_name(std::string_view field) {
  if (is_id_name(field)) return true;
  const std::vector<std::string> words = words_of(field);
  return words.size() == 1 && (is_among(words[0], kLabels) || is_among(words[0], kSources) ||
                               is_among(words[0], kDestinations));
}

bool holds_one(std::string_view field, std::span<const std::string_view> names) {
  const std::vector<std::string> words = words_of(field);
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return is_among(word, names); });
}

bool is_number(std::string_view field) {
  float value = 0;
  return parse_field(field, value) != Parse::kNotNumber;
}

// Whether a first line may be a header: it holds neither numbers nor words that stand for one that
// is missing. pandas leaves the name over its index empty.
bool has_words_only(const TextFields& fields, const TextColumns& columns) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].empty() ? i > 0 || fields.size() == 1 : is_number(fields[i])) return false;
    if (is_among(fields[i], kMissing)) return false;
    if (!fields[i].empty() && columns.is_missing(fields[i])) return false;
  }
  return true;
}

// The columns that `list` names, from 0.
class ColumnList {
 public:
  // `names`: the fields of the first line. `is_header`: whether a number may be a name, too.
  ColumnList(std::string_view list, std::span<const std::string> names, bool is_header,
             const std::string& file)
      : names_(names), is_header_(is_header), file_(file), is_taken_(names.size(), false) {
    for (std::size_t begin = 0; begin < list.size();) {
      const std::size_t end = std::min(list.find(',', begin), list.size());
      add(list.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  const std::vector<std::int64_t>& columns() const { return columns_; }
  bool by_name() const { return by_name_; }

 private:
  void add(std::string_view item) {
    const std::size_t dash = std::min(item.find('-'), item.size());
    const auto first = number(item.substr(0, dash));
    const auto last = dash == item.size() ? first : number(item.substr(dash + 1));
    const auto named = std::find(names_.begin(), names_.end(), item);
    if (named != names_.end() && (is_header_ || !first || !last)) {
      if (std::find(named + 1, names_.end(), item) != names_.end()) {
        throw DataError(fmt::format("two columns are called '{}'", item), file_,
                        "give the number of the one that is meant");
      }
      by_name_ = true;
      return take(named - names_.begin(), item);
    }
    if (!first || !last || *first < 1 || *last > std::ssize(names_) || *first > *last) {
      refuse(item);
    }
    for (std::int64_t column = *first; column <= *last; ++column) take(column - 1, item);
  }

  void take(std::int64_t column, std::string_view item) {
    if (is_taken_[static_cast<std::size_t>(column)]) {
      throw DataError(fmt::format("column {} is chosen twice", item), file_, "name it once");
    }
    is_taken_[static_cast<std::size_t>(column)] = true;
    columns_.push_back(column);
  }

  static std::optional<std::int64_t> number(std::string_view text) {
    std::int64_t value = 0;
    const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || stop != text.data() + text.size()) return std::nullopt;
    return value;
  }

  [[noreturn]] void refuse(std::string_view item) const {
    throw DataError(
        fmt::format("there is no column '{}'", item), file_,
        fmt::format("give a number from 1 to {}, or a name in the first line: {}", names_.size(),
                    shortened(fmt::format("{}", fmt::join(names_, ",")))));
  }

  std::span<const std::string> names_;
  bool is_header_;
  const std::string& file_;
  std::vector<bool> is_taken_;  // by column
  std::vector<std::int64_t> columns_;
  bool by_name_ = false;
};

// Numbers the columns that are read, in the order of `chosen`.
void choose_columns(TextLayout& layout, const TextColumns& columns, const ColumnList& list) {
  layout.targets.assign(static_cast<std::size_t>(layout.file_cols), -1);
  layout.cols = 0;
  if (!columns.chosen.empty()) {
    for (const std::int64_t column : list.columns()) {
      layout.targets[static_cast<std::size_t>(column)] = layout.cols++;
    }
    return;
  }
  for (std::int64_t column = 0; column < layout.file_cols; ++column) {
    const auto& left_out = list.columns();
    if (std::find(left_out.begin(), left_out.end(), column) != left_out.end()) continue;
    layout.targets[static_cast<std::size_t>(column)] = layout.cols++;
  }
}

bool has_usual_names(const TextLayout& layout, std::span<const std::string> names) {
  std::vector<std::string_view> read(static_cast<std::size_t>(layout.cols));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (layout.targets[i] >= 0) read[static_cast<std::size_t>(layout.targets[i])] = names[i];
  }
  if (read.size() == 2 && holds_one(read[0], kSources) && holds_one(read[1], kDestinations)) {
    return true;
  }
  return std::all_of(read.begin(), read.end(), is_usual_name);
}

// Whether a column that isn't read holds numbers, as far as one looks.
bool numbers_follow(LineReader& lines, const TextLayout& layout, const TextColumns& columns) {
  std::vector<bool> numbers(layout.targets.size(), true);
  TextFields fields;
  std::string_view line;
  int count = 0;
  for (; count < kLinesLookedAt && lines.next(line); ++count) {
    fields.split(line, layout.separator);
    for (std::size_t col = 0; col < numbers.size(); ++col) {
      numbers[col] = numbers[col] && layout.targets[col] < 0 && col < fields.size() &&
                     (is_number(fields[col]) || is_among(fields[col], kMissing) ||
                      columns.is_missing(fields[col]));
    }
  }
  return count > 0 && std::find(numbers.begin(), numbers.end(), true) != numbers.end();
}

// Whether ids are left out, and the first line calls them so.
bool leaves_out_ids(const TextLayout& layout, const TextColumns& columns,
                    std::span<const std::string> names) {
  if (columns.left_out.empty() || !columns.chosen.empty()) return false;
  for (std::size_t col = 0; col < names.size(); ++col) {
    if (layout.targets[col] < 0 && is_usual_name(names[col])) return true;
  }
  return false;
}

}  // namespace

bool is_text_path(std::string_view path) {
  return std::any_of(kEnds.begin(), kEnds.end(),
                     [&](std::string_view end) { return path.ends_with(end); });
}

std::vector<std::string> missing_words() { return {kMissing.begin(), kMissing.end()}; }

bool TextColumns::is_missing(std::string_view field) const {
  return !missing.empty() &&
         (field.empty() || std::find(missing.begin(), missing.end(), field) != missing.end());
}

bool is_id_name(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  return !words.empty() && (words.back() == "id" || words.back() == "ids" ||
                            (words.size() == 1 && is_among(words[0], kIds)));
}

TextInput parse_text_input(std::string_view input) {
  if (is_text_path(input)) return {std::string(input), {}};
  const std::size_t colon = input.rfind(':');
  if (colon == std::string_view::npos || !is_text_path(input.substr(0, colon))) return {};
  TextInput text{std::string(input.substr(0, colon)), {}};
  text.columns.chosen = input.substr(colon + 1);
  return text;
}

TextLayout read_text_layout(LineReader& lines, const TextColumns& columns, HeaderRule rule) {
  TextLayout layout;
  TextFields fields;
  std::string_view line;
  if (!lines.next(line)) return layout;
  const auto split = [&] {
    const TextFields::Status status = fields.split(line, layout.separator);
    if (status == TextFields::Status::kOk) return;
    throw DataError(complaint_of(status),
                    fmt::format("{}, line {}", lines.source().name(), lines.line_number()),
                    kQuoteRemedy);
  };
  const auto take_line = [&](std::span<const std::string> names, bool is_header) {
    layout.file_cols = static_cast<std::int64_t>(names.size());
    const ColumnList list(columns.chosen.empty() ? columns.left_out : columns.chosen, names,
                          is_header, lines.source().name());
    choose_columns(layout, columns, list);
    return list.by_name();
  };
  const auto separator = [&] {
    return columns.whole_lines || columns.one_field ? kWholeLine : find_separator(line);
  };
  layout.separator = separator();
  split();
  std::vector<std::string> names(fields.begin(), fields.end());
  const bool words_only = has_words_only(fields, columns);
  const bool by_name = take_line(names, words_only);
  if (columns.whole_lines) return layout;  // no header: a list as it is
  layout.has_header = by_name || leaves_out_ids(layout, columns, names);
  if (!layout.has_header && rule == HeaderRule::kNoNumbers) layout.has_header = words_only;
  if (!layout.has_header && rule == HeaderRule::kNames) {
    layout.has_header = words_only && numbers_follow(lines, layout, columns);
    if (!layout.has_header) {
      layout.has_header = layout.is_usual_header = has_usual_names(layout, names);
    }
  }
  if (layout.has_header && layout.cols > 0) {
    const auto first = std::find(layout.targets.begin(), layout.targets.end(), 0);
    layout.first_name = names[static_cast<std::size_t>(first - layout.targets.begin())];
  }
  // A header may be written otherwise than the rows are.
  if (layout.has_header && columns.all() && lines.next(line)) {
    layout.separator = separator();
    split();
    names.assign(fields.begin(), fields.end());
    take_line(names, false);
  }
  return layout;
}

}  // namespace ooc
