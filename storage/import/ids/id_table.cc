#include "storage/import/ids/id_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "storage/base/errors.h"
#include "storage/import/decode/line_reader.h"
#include "storage/import/decode/number_text.h"
#include "storage/import/decode/text_fields.h"
#include "storage/import/formats/line_table.h"
#include "storage/import/ids/id_numbers.h"

namespace ooc {
namespace {

constexpr std::int64_t kStepLines = 4096;

LineReader::Comments comments_of(const TextColumns& columns) {
  return columns.whole_lines ? LineReader::Comments::kNone : LineReader::Comments::kWholeLines;
}

constexpr std::string_view kHeaderHint =
    "; if the first line is a header, name its columns, FILE:COLUMN,COLUMN";

class IdTable final : public LineTable {
 public:
  IdTable(std::unique_ptr<ByteSource> source, std::string name, const TextColumns& columns,
          HeaderRule header, StringIds& ids)
      : LineTable(std::move(source), std::move(name), columns, comments_of(columns), header),
        numbers_(ids, columns) {}

  ElementKind kind() const override { return ElementKind::kString; }

  std::int64_t read(std::span<std::int64_t> out) override {
    if (cols() == 0) return 0;
    const std::int64_t wanted = static_cast<std::int64_t>(out.size()) / cols();
    const std::vector<std::int64_t>& targets = layout().targets;
    std::string_view line;
    std::int64_t count = 0;
    for (; count < wanted && next_row(line); ++count) {
      const TextFields& fields =
          split(line,
                "every line needs the same number of fields; a field with the separator in "
                "it needs double quotes");
      for (std::size_t col = 0; col < fields.size(); ++col) {
        if (targets[col] < 0) continue;
        out[count * cols() + targets[col]] = numbers_.of(fields[col], [&] { return place(col); });
      }
      if (row() == 1) first_is_unknown_ = numbers_.has_unknown();
    }
    numbers_.check_unknown(first_is_unknown_ ? kHeaderHint : "");
    return count;
  }
  std::int64_t read(std::span<float>) override {
    throw DataError("ids where numbers are needed", name(), "give another file");
  }

 private:
  IdNumbers numbers_;
  bool first_is_unknown_ = false;  // some id of the first row
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

}  // namespace ooc
