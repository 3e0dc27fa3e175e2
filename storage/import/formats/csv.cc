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

namespace ooc {
namespace {

constexpr std::int64_t kStepLines = 4096;

class TextTable final : public TableReader {
 public:
  TextTable(std::unique_ptr<ByteSource> source, std::string name, const TextColumns& columns)
      : name_(std::move(name)),
        columns_(columns),
        comments_(columns.all() ? LineReader::Comments::kAnywhere
                                : LineReader::Comments::kWholeLines),
        lines_(std::move(source), LineReader::kBufferBytes, comments_),
        layout_(read_text_layout(lines_, columns, HeaderRule::kNoNumbers)),
        numbers_are_missing_(std::any_of(
            columns.missing.begin(), columns.missing.end(), [](const std::string& word) {
              float value = 0;
              return parse_field(word, value) == Parse::kOk && !std::isnan(value);
            })) {
    rewind();
    std::string_view line;
    if (lines_.next(line)) {
      judge_first_row(line);
    } else {
      layout_.cols = 0;
    }
    rewind();
  }

  const std::string& name() const override { return name_; }
  std::int64_t cols() const override { return layout_.cols; }
  ElementKind kind() const override { return kind_; }
  bool has_all_columns() const override { return columns_.all(); }
  std::string_view first_name() const override { return layout_.first_name; }

  std::int64_t rows() override {
    count_rows(Control{});
    return *rows_;
  }
  std::optional<std::int64_t> known_rows() const override { return rows_; }

  void count_rows(const Control& control) override {
    if (rows_) return;
    LineReader again = reopen();
    std::string_view line;
    std::int64_t count = 0;
    while (again.next(line)) {
      if (++count % kStepLines == 0) control.step("counting rows", static_cast<double>(count), 0);
    }
    rows_ = count - lines_before();
  }

  std::int64_t read(std::span<std::int64_t> out) override { return read_rows(out); }
  std::int64_t read(std::span<float> out) override { return read_rows(out); }

  void rewind() override {
    row_ = 0;
    lines_.rewind();
    std::string_view header;
    if (layout_.has_header) lines_.next(header);
  }

  void read_nan_as(std::int64_t value) override { nan_value_ = value; }

  std::string where(std::int64_t row) override {
    LineReader again = reopen();
    std::string_view line;
    for (std::int64_t i = 0; i <= row + lines_before(); ++i) again.next(line);
    return fmt::format("{}, line {}", name(), again.line_number());
  }

  std::string row_text(std::int64_t row) override {
    LineReader again = reopen();
    std::string_view line;
    for (std::int64_t i = 0; i <= row + lines_before(); ++i) again.next(line);
    return shortened(line);
  }

 private:
  std::int64_t lines_before() const { return layout_.has_header ? 1 : 0; }
  LineReader reopen() const {
    return LineReader(lines_.source().reopen(), LineReader::kBufferBytes, comments_);
  }

  void judge_first_row(std::string_view line) {
    fields_.split(line, layout_.separator);
    std::int64_t value = 0;
    bool words = true;
    bool integers = true;
    for (std::size_t i = 0; i < std::min(fields_.size(), layout_.targets.size()); ++i) {
      if (layout_.targets[i] < 0) continue;
      const std::string_view field = fields_[i];
      if (columns_.is_missing(field)) continue;
      words = words && parse_word(field);
      integers = integers && parse_field(field, value) == Parse::kOk &&
                 field.find_first_of(".eE") == std::string_view::npos;
    }
    kind_ = words ? ElementKind::kBool : integers ? ElementKind::kInteger : ElementKind::kFloat;
  }

  template <class Out>
  std::int64_t read_rows(std::span<Out> out) {
    const std::int64_t cols = layout_.cols;
    if (cols == 0) return 0;
    const std::int64_t wanted = static_cast<std::int64_t>(out.size()) / cols;
    std::string_view line;
    std::int64_t count = 0;
    while (count < wanted && lines_.next(line)) {
      check_blank_lines(row_ + count);
      Out* const row = out.data() + count * cols;
      if (numbers_are_missing_ || !scan_line(line, row)) parse_fields(line, row);
      ++count;
    }
    row_ += count;
    return count;
  }

  // A label that is an empty field on a line of its own looks like no line.
  void check_blank_lines(std::int64_t row) const {
    if (row == 0 || lines_.blank_lines() == 0 || layout_.file_cols > 1) return;
    if (columns_.missing.empty()) return;
    throw DataError("an empty line among values", place(), kBlankRemedy);
  }

  // Nearly every line; false where it takes parse_fields(), which also knows what is wrong.
  template <class Out>
  bool scan_line(std::string_view line, Out* out) const {
    const char* at = line.data();
    const char* const end = at + line.size();
    const char separator = layout_.separator, tab = separator == kBlankRuns ? '\t' : ' ';
    for (std::int64_t col = 0; col < layout_.file_cols; ++col) {
      while (at != end && (*at == ' ' || *at == tab)) ++at;
      const bool quoted = at != end && *at == '"';
      const std::int64_t target = layout_.targets[static_cast<std::size_t>(col)];
      if (target >= 0) {
        at = scan_number(at + quoted, end, out[target]);
        if (at == nullptr || (quoted && (at == end || *at++ != '"'))) return false;
      } else if (quoted) {
        return false;
      } else {
        while (at != end && *at != separator && !(tab == '\t' && *at == tab)) ++at;
      }
      if (col + 1 == layout_.file_cols) return at == end;
      if (at == end || !(*at == separator || (tab == '\t' && *at == tab))) return false;
      ++at;
    }
    return false;
  }

  template <class Out>
  void parse_fields(std::string_view line, Out* out) {
    const TextFields::Status split = fields_.split(line, layout_.separator);
    if (split != TextFields::Status::kOk) {
      throw DataError(complaint_of(split), place(), kQuoteRemedy);
    }
    if (fields_.size() != layout_.targets.size()) {
      throw DataError(
          fmt::format("{} fields where the first line has {}", fields_.size(), layout_.file_cols),
          place(), "every line needs the same number of fields");
    }
    for (std::size_t col = 0; col < fields_.size(); ++col) {
      if (layout_.targets[col] < 0) continue;
      Out& value = out[layout_.targets[col]];
      // Numbers may have blanks within their quotes.
      const std::string_view field = trimmed(fields_[col]);
      if (columns_.is_missing(field)) {
        value = missing<Out>();
        continue;
      }
      const Parse status = parse_field(field, value);
      if (status != Parse::kOk && !replace_nan(field, value)) refuse_field(status, field, col);
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

  std::string place() const { return fmt::format("{}, line {}", name(), lines_.line_number()); }

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

  [[noreturn]] void refuse_field(Parse status, std::string_view field, std::size_t index) const {
    const std::string place_in_line =
        layout_.file_cols > 1 ? fmt::format(", field {}", index + 1) : "";
    const bool tabs = field.find('\t') != std::string_view::npos;
    throw DataError(describe(status, field), place() + place_in_line,
                    status == Parse::kNotInteger ? "whole numbers are needed here"
                    : tabs ? "the line has tabs as well as other separators: write one kind"
                           : "correct the value");
  }

  std::string name_;
  TextColumns columns_;
  LineReader::Comments comments_;
  LineReader lines_;
  TextLayout layout_;
  TextFields fields_;
  std::optional<std::int64_t> rows_;
  std::int64_t row_ = 0;  // read next
  ElementKind kind_ = ElementKind::kFloat;
  std::optional<std::int64_t> nan_value_;
  bool numbers_are_missing_;  // some number says that there is no value
};

}  // namespace

std::unique_ptr<TableReader> open_text_table(std::unique_ptr<ByteSource> source, std::string name,
                                             const TextColumns& columns) {
  return std::make_unique<TextTable>(std::move(source), std::move(name), columns);
}

}  // namespace ooc
