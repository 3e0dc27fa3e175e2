#include "storage/import/ids/id_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "storage/base/errors.h"
#include "storage/base/utf8.h"
#include "storage/import/formats/line_reader.h"
#include "storage/import/formats/number_text.h"

namespace ooc {
namespace {

constexpr char kBlankRuns = ' ';
constexpr std::int64_t kStepLines = 4096;
constexpr std::array<std::string_view, 18> kHeaderNames = {
    "source",      "src",      "from",    "target",    "dst",       "dest",
    "destination", "to",       "id",      "ids",       "node",      "nodes",
    "vertex",      "vertices", "node_id", "vertex_id", "source_id", "target_id"};

enum class Split { kOk, kOpenQuote, kBehindQuote };

// The fields of a line, each a string of its own.
class IdFields {
 public:
  // Of the separators outside quotes, the first in this order.
  static char separator_of(std::string_view line) {
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

  Split split(std::string_view line, char separator) {
    line_ = line;
    separator_ = separator;
    size_ = 0;
    for (std::size_t at = 0;;) {
      if (size_ == fields_.size()) fields_.emplace_back();
      at = skip_blanks(at);
      if (at < line.size() && line[at] == '"') {
        at = take_quoted(at + 1, fields_[size_]);
        if (at == std::string_view::npos) return Split::kOpenQuote;
        at = skip_blanks(at);
        if (at < line.size() && !ends_field(at)) return Split::kBehindQuote;
      } else {
        at = take_plain(at, fields_[size_]);
      }
      ++size_;
      if (at >= line.size()) return Split::kOk;
      if (separator != kBlankRuns) ++at;
    }
  }

  std::size_t size() const { return size_; }
  const std::string& operator[](std::size_t i) const { return fields_[i]; }

 private:
  bool is_blank(char c) const { return c == ' ' || (c == '\t' && separator_ != '\t'); }
  std::size_t skip_blanks(std::size_t at) const {
    while (at < line_.size() && is_blank(line_[at])) ++at;
    return at;
  }
  bool ends_field(std::size_t at) const {
    return separator_ == kBlankRuns ? at > 0 && is_blank(line_[at - 1]) : line_[at] == separator_;
  }
  std::size_t take_quoted(std::size_t at, std::string& field) const {
    field.clear();
    for (; at < line_.size(); ++at) {
      if (line_[at] == '"') {
        if (at + 1 == line_.size() || line_[at + 1] != '"') return at + 1;
        ++at;
      }
      field += line_[at];
    }
    return std::string_view::npos;
  }
  std::size_t take_plain(std::size_t at, std::string& field) const {
    const std::size_t end =
        std::min(line_.size(), separator_ == kBlankRuns ? line_.find_first_of(" \t", at)
                                                        : line_.find(separator_, at));
    std::size_t last = end;
    while (last > at && is_blank(line_[last - 1])) --last;
    field.assign(line_.substr(at, last - at));
    return end;
  }

  std::string_view line_;
  char separator_ = ',';
  std::vector<std::string> fields_;
  std::size_t size_ = 0;
};

bool is_header_name(std::string_view field) {
  std::string lower(field);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return std::find(kHeaderNames.begin(), kHeaderNames.end(), lower) != kHeaderNames.end();
}

bool is_header(const IdFields& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!is_header_name(fields[i])) return false;
  }
  return true;
}

class IdTable final : public TableReader {
 public:
  IdTable(std::unique_ptr<ByteSource> source, StringIds& ids)
      : lines_(std::move(source), LineReader::kBufferBytes, LineReader::Comments::kWholeLines),
        ids_(ids) {
    std::string_view line;
    if (lines_.next(line)) {
      separator_ = IdFields::separator_of(line);
      split(line);
      cols_ = static_cast<std::int64_t>(fields_.size());
      lines_before_ = is_header(fields_) ? 1 : 0;
    }
    rewind();
  }

  const std::string& name() const override { return lines_.source().name(); }
  std::int64_t cols() const override { return cols_; }
  ElementKind kind() const override { return ElementKind::kInteger; }
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
    rows_ = count - lines_before_;
  }

  std::int64_t read(std::span<std::int64_t> out) override {
    if (cols_ == 0) return 0;
    const std::int64_t wanted = static_cast<std::int64_t>(out.size()) / cols_;
    std::string_view line;
    std::int64_t count = 0;
    for (; count < wanted && lines_.next(line); ++count) {
      split(line);
      if (static_cast<std::int64_t>(fields_.size()) != cols_) {
        throw DataError(
            fmt::format("{} fields where the first line has {}", fields_.size(), cols_), place(),
            "every line needs the same number of fields; a field with the separator in it "
            "needs double quotes");
      }
      for (std::int64_t i = 0; i < cols_; ++i) out[count * cols_ + i] = number_of(i);
    }
    return count;
  }
  std::int64_t read(std::span<float>) override {
    throw DataError("ids where numbers are needed", name(), "give another file");
  }

  void rewind() override {
    lines_.rewind();
    std::string_view header;
    if (lines_before_ > 0) lines_.next(header);
  }

  std::string where(std::int64_t row) override {
    LineReader again = reopen();
    std::string_view line;
    for (std::int64_t i = 0; i <= row + lines_before_; ++i) again.next(line);
    return fmt::format("{}, line {}", name(), again.line_number());
  }

  std::string row_text(std::int64_t row) override {
    LineReader again = reopen();
    std::string_view line;
    for (std::int64_t i = 0; i <= row + lines_before_; ++i) again.next(line);
    return shortened(line);
  }

 private:
  LineReader reopen() const {
    return LineReader(lines_.source().reopen(), LineReader::kBufferBytes,
                      LineReader::Comments::kWholeLines);
  }
  std::string place() const { return fmt::format("{}, line {}", name(), lines_.line_number()); }

  void split(std::string_view line) {
    const Split found = fields_.split(line, separator_);
    if (found == Split::kOk) return;
    throw DataError(found == Split::kOpenQuote ? "a double quote that is not closed on its line"
                                               : "text after a closing double quote",
                    place(), "write a quote inside a quoted field twice");
  }

  std::int64_t number_of(std::int64_t index) {
    const std::string& id = fields_[static_cast<std::size_t>(index)];
    const auto refuse = [&](std::string_view what, std::string_view remedy) {
      const std::string field = cols_ > 1 ? fmt::format(", field {}", index + 1) : "";
      throw DataError(what, place() + field, remedy);
    };
    if (id.empty()) refuse("an empty id", "every vertex needs a name");
    if (id.size() > std::size_t{kMaxIdBytes}) {
      refuse(fmt::format("an id of {} bytes", id.size()),
             fmt::format("at most {} are possible", kMaxIdBytes));
    }
    if (!is_plain_utf8(id)) {
      refuse("an id that is no UTF-8, or has control characters",
             "convert the file, or correct it");
    }
    if (!ids_.finished()) {
      ids_.add(id);
      return 0;
    }
    const auto found = ids_.find(id);
    if (!found) refuse(fmt::format("vertex id {} is in no edge", quoted_id(id)), "correct it");
    return *found;
  }

  LineReader lines_;
  StringIds& ids_;
  IdFields fields_;
  char separator_ = ',';
  std::int64_t lines_before_ = 0;  // 1 where there is a header
  std::int64_t cols_ = 0;
  std::optional<std::int64_t> rows_;
};

}  // namespace

std::optional<StringIdFound> find_string_id(std::unique_ptr<ByteSource> source,
                                            const Control& control) {
  LineReader lines(std::move(source));
  IdFields fields;
  std::string_view line;
  char separator = ',';
  std::optional<StringIdFound> words;  // the first line, where it has no number: a header?
  std::int64_t rows = 0;
  for (std::int64_t count = 0; lines.next(line); ++count) {
    if (count == 0) separator = IdFields::separator_of(line);
    if (count % kStepLines == 0) control.step("looking at ids", static_cast<double>(count), 0);
    fields.split(line, separator);
    std::size_t integers = 0;
    std::string other;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      std::int64_t value = 0;
      const std::string& field = fields[i];
      const char* const end = field.data() + field.size();
      if (scan_number(field.data(), end, value) == end || parse_field(field, value) == Parse::kOk) {
        ++integers;
      } else if (other.empty()) {
        other = field;
      }
    }
    const bool found = integers < fields.size() || fields.size() == 0;
    if (count == 0 && integers == 0) {
      words = StringIdFound{other, lines.line_number(), false};
      if (is_header(fields)) words.reset();
      continue;
    }
    if (found) return StringIdFound{other, lines.line_number(), rows > 0};
    ++rows;
  }
  return rows == 0 ? words : std::nullopt;
}

std::unique_ptr<TableReader> open_id_table(std::unique_ptr<ByteSource> source, StringIds& ids) {
  return std::make_unique<IdTable>(std::move(source), ids);
}

std::string quoted_id(std::string_view id) { return fmt::format("'{}'", shortened(id)); }

}  // namespace ooc
