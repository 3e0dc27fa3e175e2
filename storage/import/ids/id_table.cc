#include "storage/import/ids/id_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "storage/base/errors.h"
#include "storage/base/utf8.h"
#include "storage/import/decode/line_reader.h"
#include "storage/import/decode/number_text.h"
#include "storage/import/decode/text_fields.h"
#include "storage/import/ids/unknown_ids.h"

namespace ooc {
namespace {

constexpr std::int64_t kStepLines = 4096;

LineReader::Comments comments_of(const TextColumns& columns) {
  return columns.whole_lines ? LineReader::Comments::kNone : LineReader::Comments::kWholeLines;
}

class IdTable final : public TableReader {
 public:
  IdTable(std::unique_ptr<ByteSource> source, std::string name, const TextColumns& columns,
          HeaderRule header, StringIds& ids)
      : name_(std::move(name)),
        columns_(columns),
        comments_(comments_of(columns)),
        lines_(std::move(source), LineReader::kBufferBytes, comments_),
        layout_(read_text_layout(lines_, columns, header)),
        ids_(ids) {
    rewind();
  }

  const std::string& name() const override { return name_; }
  std::int64_t cols() const override { return layout_.cols; }
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
    rows_ = count - lines_before();
  }

  // Reads on after an unknown id, so that the message names a few.
  std::int64_t read(std::span<std::int64_t> out) override {
    if (layout_.cols == 0) return 0;
    const std::int64_t wanted = static_cast<std::int64_t>(out.size()) / layout_.cols;
    std::string_view line;
    std::int64_t count = 0;
    for (; count < wanted && lines_.next(line); ++count, ++row_) {
      split(line);
      if (row_ > 0 && lines_.blank_lines() > 0 && layout_.file_cols == 1 &&
          !columns_.missing.empty()) {
        throw DataError("an empty line among values", place(), kBlankRemedy);
      }
      for (std::size_t col = 0; col < fields_.size(); ++col) {
        if (layout_.targets[col] < 0) continue;
        out[count * layout_.cols + layout_.targets[col]] = number_of(col);
      }
    }
    if (!unknown_.empty()) {
      throw DataError(unknown_ids(unknown_, ids_.source()), unknown_at_,
                      unknown_ids_remedy(ids_.source()));
    }
    return count;
  }
  std::int64_t read(std::span<float>) override {
    throw DataError("ids where numbers are needed", name(), "give another file");
  }

  void rewind() override {
    row_ = 0;
    lines_.rewind();
    std::string_view header;
    if (layout_.has_header) lines_.next(header);
  }

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
  std::string place() const { return fmt::format("{}, line {}", name(), lines_.line_number()); }

  void split(std::string_view line) {
    const TextFields::Status status = fields_.split(line, layout_.separator);
    if (status != TextFields::Status::kOk) {
      throw DataError(complaint_of(status), place(), kQuoteRemedy);
    }
    if (fields_.size() == layout_.targets.size()) return;
    throw DataError(
        fmt::format("{} fields where the first line has {}", fields_.size(), layout_.file_cols),
        place(),
        "every line needs the same number of fields; a field with the separator in it needs double "
        "quotes");
  }

  std::int64_t number_of(std::size_t col) {
    const std::string_view id = fields_[col];
    const auto refuse = [&](std::string_view what, std::string_view remedy) {
      const std::string field = layout_.file_cols > 1 ? fmt::format(", field {}", col + 1) : "";
      throw DataError(what, place() + field, remedy);
    };
    if (columns_.is_missing(id)) return -1;
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
    if (!found) note_unknown(id);
    return found.value_or(0);
  }

  void note_unknown(std::string_view id) {
    if (unknown_.empty()) unknown_at_ = place();
    std::string quoted = quoted_id(id);
    const bool again = std::find(unknown_.begin(), unknown_.end(), quoted) != unknown_.end();
    if (!again && unknown_.size() < kMostUnknownNamed) unknown_.push_back(std::move(quoted));
  }

  std::string name_;
  TextColumns columns_;
  LineReader::Comments comments_;
  LineReader lines_;
  TextLayout layout_;
  StringIds& ids_;
  TextFields fields_;
  std::optional<std::int64_t> rows_;
  std::int64_t row_ = 0;              // read next
  std::vector<std::string> unknown_;  // the first few
  std::string unknown_at_;
};

bool is_number(std::string_view field, NumberKind kind) {
  std::int64_t value = 0;
  float real = 0;
  const char* const end = field.data() + field.size();
  return scan_number(field.data(), end, value) == end || parse_field(field, value) == Parse::kOk ||
         (kind == NumberKind::kAny && parse_field(field, real) == Parse::kOk);
}

// The first field that is read and neither a number nor missing; empty where there is none.
std::optional<std::string> find_word(const TextFields& fields, const TextLayout& layout,
                                     const TextColumns& columns, NumberKind kind) {
  bool any = false;
  for (std::size_t col = 0; col < std::min(fields.size(), layout.targets.size()); ++col) {
    if (layout.targets[col] < 0) continue;
    any = true;
    if (columns.is_missing(fields[col]) || is_number(fields[col], kind)) continue;
    return std::string(fields[col]);
  }
  return any ? std::nullopt : std::optional<std::string>("");
}

}  // namespace

std::optional<StringIdFound> find_string_id(std::unique_ptr<ByteSource> source,
                                            const TextColumns& columns, NumberKind kind,
                                            const Control& control) {
  LineReader lines(std::move(source), LineReader::kBufferBytes, comments_of(columns));
  // Words over numbers are a header, whatever they say.
  const TextLayout layout = read_text_layout(lines, columns, HeaderRule::kNames);
  lines.rewind();
  TextFields fields;
  std::string_view line;
  std::optional<StringIdFound> words;
  std::int64_t rows = 0;
  for (std::int64_t count = 0; lines.next(line); ++count) {
    if (count == 0 && layout.has_header) continue;
    if (count % kStepLines == 0) control.step("looking at ids", static_cast<double>(count), 0);
    fields.split(line, layout.separator);
    auto word = find_word(fields, layout, columns, kind);
    if (const std::size_t hash = line.find('#'); word && hash != std::string_view::npos) {
      // A table of numbers has comments after them.
      fields.split(line.substr(0, hash), layout.separator);
      if (fields.size() == layout.targets.size() && !find_word(fields, layout, columns, kind)) {
        word.reset();
      }
    }
    if (!word) {
      ++rows;
      continue;
    }
    const StringIdFound found{*word, lines.line_number(), rows > 0};
    fields.split(line, layout.separator);
    const bool has_number = std::any_of(fields.begin(), fields.end(), [&](std::string_view field) {
      return is_number(field, kind);
    });
    if (count > 0 || has_number) return found;
    words = found;
  }
  return rows == 0 ? words : std::nullopt;
}

std::unique_ptr<TableReader> open_id_table(std::unique_ptr<ByteSource> source, std::string name,
                                           const TextColumns& columns, HeaderRule header,
                                           StringIds& ids) {
  return std::make_unique<IdTable>(std::move(source), std::move(name), columns, header, ids);
}

std::string quoted_id(std::string_view id) { return fmt::format("'{}'", shortened(id)); }

}  // namespace ooc
