#include "storage/import/formats/csv.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <type_traits>

#include "storage/base/errors.h"
#include "storage/import/formats/line_reader.h"
#include "storage/import/formats/number_text.h"

namespace ooc {
namespace {

constexpr char kBlankRuns = ' ';
constexpr std::int64_t kStepLines = 4096;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Takes the first field off `line`; false once none is left. Fields are trimmed of blanks and
// of one pair of double quotes.
class FieldSplitter {
 public:
  FieldSplitter(std::string_view line, char separator) : rest_(line), separator_(separator) {}

  bool next(std::string_view& field) {
    if (done_) return false;
    const std::size_t end =
        separator_ == kBlankRuns ? rest_.find_first_of(" \t") : rest_.find(separator_);
    field = without_quotes(trim(rest_.substr(0, end)));
    if (end == std::string_view::npos) {
      done_ = true;
      return true;
    }
    rest_.remove_prefix(end + 1);
    if (separator_ == kBlankRuns) rest_ = trim(rest_);
    return true;
  }

 private:
  static std::string_view without_quotes(std::string_view text) {
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') return text;
    return trim(text.substr(1, text.size() - 2));
  }

  static std::string_view trim(std::string_view text) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
  }

  std::string_view rest_;
  char separator_;
  bool done_ = false;
};

char find_separator(std::string_view line) {
  for (const char candidate : {';', ',', '\t'}) {
    if (line.find(candidate) != std::string_view::npos) return candidate;
  }
  return kBlankRuns;
}

class TextTable final : public TableReader {
 public:
  explicit TextTable(std::unique_ptr<ByteSource> source) : lines_(std::move(source)) {
    std::string_view line;
    while (lines_.next(line)) {
      separator_ = find_separator(line);
      if (lines_before_ == 0 && is_header(line)) {
        lines_before_ = 1;
        continue;
      }
      judge_first_row(line);
      break;
    }
    rewind();
  }

  const std::string& name() const override { return lines_.source().name(); }
  std::int64_t cols() const override { return cols_; }
  ElementKind kind() const override { return kind_; }

  std::int64_t rows() override {
    count_rows(Control{});
    return *rows_;
  }
  std::optional<std::int64_t> known_rows() const override { return rows_; }

  void count_rows(const Control& control) override {
    if (rows_) return;
    LineReader again(lines_.source().reopen());
    std::string_view line;
    std::int64_t count = 0;
    while (again.next(line)) {
      if (++count % kStepLines == 0) control.step("counting rows", static_cast<double>(count), 0);
    }
    rows_ = count - lines_before_;
  }

  std::int64_t read(std::span<std::int64_t> out) override { return read_rows(out); }
  std::int64_t read(std::span<float> out) override { return read_rows(out); }

  void rewind() override {
    lines_.rewind();
    std::string_view header;
    if (lines_before_ > 0) lines_.next(header);
  }

  void read_nan_as(std::int64_t value) override { nan_value_ = value; }

  std::string where(std::int64_t row) override {
    LineReader again(lines_.source().reopen());
    std::string_view line;
    for (std::int64_t i = 0; i <= row + lines_before_; ++i) again.next(line);
    return fmt::format("{}, line {}", name(), again.line_number());
  }

  std::string row_text(std::int64_t row) override {
    LineReader again(lines_.source().reopen());
    std::string_view line;
    for (std::int64_t i = 0; i <= row + lines_before_; ++i) again.next(line);
    return shortened(line);
  }

 private:
  bool is_header(std::string_view line) const {
    FieldSplitter fields(line, separator_);
    std::string_view field;
    float value = 0;
    while (fields.next(field)) {
      if (field.empty() || parse_field(field, value) != Parse::kNotNumber) return false;
    }
    return true;
  }

  void judge_first_row(std::string_view line) {
    FieldSplitter fields(line, separator_);
    std::string_view field;
    std::int64_t value = 0;
    bool words = true;
    bool integers = true;
    for (; fields.next(field); ++cols_) {
      words = words && parse_word(field);
      integers = integers && parse_field(field, value) == Parse::kOk &&
                 field.find_first_of(".eE") == std::string_view::npos;
    }
    kind_ = words ? ElementKind::kBool : integers ? ElementKind::kInteger : ElementKind::kFloat;
  }

  template <class Out>
  std::int64_t read_rows(std::span<Out> out) {
    if (cols_ == 0) return 0;
    const std::int64_t wanted = static_cast<std::int64_t>(out.size()) / cols_;
    std::string_view line;
    std::int64_t count = 0;
    while (count < wanted && lines_.next(line)) {
      Out* const row = out.data() + count * cols_;
      if (!scan_line(line, row)) parse_fields(line, row);
      ++count;
    }
    return count;
  }

  // Nearly every line; false where it takes parse_fields(), which also knows what is wrong.
  template <class Out>
  bool scan_line(std::string_view line, Out* out) const {
    const char* at = line.data();
    const char* const end = at + line.size();
    const char tab = separator_ == kBlankRuns ? '\t' : ' ';
    for (std::int64_t col = 0; col < cols_; ++col) {
      while (at != end && (*at == ' ' || *at == tab)) ++at;
      const bool quoted = at != end && *at == '"';
      at = scan_number(at + quoted, end, out[col]);
      if (at == nullptr || (quoted && (at == end || *at++ != '"'))) return false;
      if (col + 1 == cols_) return at == end;
      if (at == end || !(*at == separator_ || (tab == '\t' && *at == tab))) return false;
      ++at;
    }
    return false;
  }

  template <class Out>
  void parse_fields(std::string_view line, Out* out) {
    FieldSplitter fields(line, separator_);
    std::string_view field;
    std::int64_t count = 0;
    while (fields.next(field)) {
      if (count < cols_) {
        const Parse status = parse_field(field, out[count]);
        if (status != Parse::kOk && !replace_nan(field, out[count])) {
          refuse_field(status, field, count);
        }
      }
      ++count;
    }
    if (count == cols_) return;
    throw DataError(fmt::format("{} fields where the first line has {}", count, cols_), place(),
                    "every line needs the same number of fields");
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

  [[noreturn]] void refuse_field(Parse status, std::string_view field, std::int64_t index) const {
    const std::string place_in_line = cols_ > 1 ? fmt::format(", field {}", index + 1) : "";
    throw DataError(
        describe(status, field), place() + place_in_line,
        status == Parse::kNotInteger ? "whole numbers are needed here" : "correct the value");
  }

  LineReader lines_;
  char separator_ = ',';
  std::int64_t lines_before_ = 0;  // 1 where there is a header
  std::int64_t cols_ = 0;
  std::optional<std::int64_t> rows_;
  ElementKind kind_ = ElementKind::kFloat;
  std::optional<std::int64_t> nan_value_;
};

}  // namespace

std::unique_ptr<TableReader> open_text_table(std::unique_ptr<ByteSource> source) {
  return std::make_unique<TextTable>(std::move(source));
}

}  // namespace ooc
