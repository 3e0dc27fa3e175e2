#include "storage/import/formats/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "storage/base/errors.h"
#include "storage/import/decode/line_reader.h"
#include "storage/import/decode/number_text.h"
#include "storage/import/decode/text_fields.h"
#include "storage/import/decode/text_layout.h"
#include "storage/import/formats/line_table.h"

namespace ooc {
namespace {

LineReader::Comments comments_of(const TextColumns& columns) {
  return columns.all() ? LineReader::Comments::kAnywhere : LineReader::Comments::kWholeLines;
}

class TextTable final : public LineTable {
 public:
  TextTable(std::unique_ptr<ByteSource> source, std::string name, const TextColumns& columns)
      : LineTable(std::move(source), std::move(name), columns, comments_of(columns),
                  HeaderRule::kNoNumbers),
        numbers_are_missing_(std::any_of(
            columns.missing.begin(), columns.missing.end(), [](const std::string& word) {
              float value = 0;
              return parse_field(word, value) == Parse::kOk && !std::isnan(value);
            })) {
    std::string_view line;
    if (next_row(line)) {
      judge_first_row(line);
    } else {
      leave_out_columns();
    }
    rewind();
  }

  ElementKind kind() const override { return kind_; }

  std::int64_t read(std::span<std::int64_t> out) override { return read_rows(out); }
  std::int64_t read(std::span<float> out) override { return read_rows(out); }

  void read_nan_as(std::int64_t value) override { nan_value_ = value; }

 private:
  void judge_first_row(std::string_view line) {
    TextFields fields;
    fields.split(line, layout().separator);
    has_text_.assign(layout().targets.size(), false);
    std::int64_t value = 0;
    bool words = true;
    bool integers = true;
    for (std::size_t i = 0; i < std::min(fields.size(), layout().targets.size()); ++i) {
      if (layout().targets[i] < 0) continue;
      const std::string_view field = fields[i];
      if (columns().is_missing(field)) continue;
      const bool word = parse_word(field).has_value();
      float number = 0;
      has_text_[i] =
          cols() > 1 && !field.empty() && !word && parse_field(field, number) == Parse::kNotNumber;
      words = words && word;
      integers = integers && parse_field(field, value) == Parse::kOk &&
                 field.find_first_of(".eE") == std::string_view::npos;
    }
    kind_ = words ? ElementKind::kBool : integers ? ElementKind::kInteger : ElementKind::kFloat;
  }

  template <class Out>
  std::int64_t read_rows(std::span<Out> out) {
    if (cols() == 0) return 0;
    const std::int64_t wanted = static_cast<std::int64_t>(out.size()) / cols();
    std::string_view line;
    std::int64_t count = 0;
    for (; count < wanted && next_row(line); ++count) {
      Out* const row = out.data() + count * cols();
      if (numbers_are_missing_ || !scan_line(line, row)) parse_fields(line, row);
    }
    return count;
  }

  // Nearly every line; false where it takes parse_fields(), which also knows what is wrong.
  template <class Out>
  bool scan_line(std::string_view line, Out* out) const {
    const char* at = line.data();
    const char* const end = at + line.size();
    const char separator = layout().separator, tab = separator == kBlankRuns ? '\t' : ' ';
    for (std::int64_t col = 0; col < layout().file_cols; ++col) {
      while (at != end && (*at == ' ' || *at == tab)) ++at;
      const bool quoted = at != end && *at == '"';
      const std::int64_t target = layout().targets[static_cast<std::size_t>(col)];
      if (target >= 0) {
        at = scan_number(at + quoted, end, out[target]);
        if (at == nullptr || (quoted && (at == end || *at++ != '"'))) return false;
      } else if (quoted) {
        return false;
      } else {
        while (at != end && *at != separator && !(tab == '\t' && *at == tab)) ++at;
      }
      if (col + 1 == layout().file_cols) return at == end;
      if (at == end || !(*at == separator || (tab == '\t' && *at == tab))) return false;
      ++at;
    }
    return false;
  }

  template <class Out>
  void parse_fields(std::string_view line, Out* out) {
    const TextFields& fields = split(line, "every line needs the same number of fields");
    for (std::size_t col = 0; col < fields.size(); ++col) {
      if (layout().targets[col] < 0) continue;
      Out& value = out[layout().targets[col]];
      // Numbers may have blanks within their quotes.
      const std::string_view field = trimmed(fields[col]);
      if (columns().is_missing(field)) {
        value = missing<Out>();
        continue;
      }
      const Parse status = parse_field(field, value);
      if (status != Parse::kOk && !replace_nan(field, value))
        refuse_field(status, field, col, line);
    }
  }

  template <class Out>
  Out missing() const {
    if constexpr (std::is_integral_v<Out>) {
      if (nan_value_) return *nan_value_;
      throw DataError("no value", place(), "every row needs one here");
    } else {
      return std::numeric_limits<Out>::quiet_NaN();
    }
  }

  static std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
    while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
    return text;
  }

  // Whether `field` is a NaN that integers have a value for.
  template <class Out>
  bool replace_nan(std::string_view field, Out& value) const {
    float number = 0;
    if constexpr (std::is_integral_v<Out>) {
      if (nan_value_ && parse_field(field, number) == Parse::kOk && std::isnan(number)) {
        value = *nan_value_;
        return true;
      }
    }
    return false;
  }

  // `line` is the field's.
  [[noreturn]] void refuse_field(Parse status, std::string_view field, std::size_t index,
                                 std::string_view line) const {
    const bool tabs = field.find('\t') != std::string_view::npos;
    if (!tabs && has_text_[index]) {
      throw DataError(describe(status, field), fmt::format("{}: {}", place(index), shortened(line)),
                      choice(index));
    }
    throw DataError(describe(status, field), place(index),
                    status == Parse::kNotInteger ? "whole numbers are needed here"
                    : tabs ? "the line has tabs as well as other separators: write one kind"
                           : "correct the value");
  }

  // What to do with a table that has columns of text, of which `index` is one.
  std::string choice(std::size_t index) const {
    const std::string file = parse_text_input(name()).path;
    std::string numbers;
    for (std::size_t i = 0; i < has_text_.size(); ++i) {
      if (has_text_[i] || layout().targets[i] < 0) continue;
      numbers += fmt::format("{}{}", numbers.empty() ? "" : ",", i + 1);
    }
    return fmt::format(
        "{}; names in edges need --remap-ids, a column of ids is --id COLUMN, one of class names "
        "--labels {}:{}",
        numbers.empty() || !columns().chosen.empty()
            ? "choose columns of numbers"
            : fmt::format("choose the columns of numbers, {}:{}", file, numbers),
        file, index + 1);
  }

  ElementKind kind_ = ElementKind::kFloat;
  std::vector<bool> has_text_;  // where several columns are read: in the first row
  std::optional<std::int64_t> nan_value_;
  bool numbers_are_missing_;  // some number says that there is no value
};

}  // namespace

std::unique_ptr<TableReader> open_text_table(std::unique_ptr<ByteSource> source, std::string name,
                                             const TextColumns& columns) {
  return std::make_unique<TextTable>(std::move(source), std::move(name), columns);
}

}  // namespace ooc
