#include "storage/import/formats/line_table.h"

#include <fmt/format.h>

#include <utility>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kStepLines = 4096;

}  // namespace

LineTable::LineTable(std::unique_ptr<ByteSource> source, std::string name,
                     const TextColumns& columns, LineReader::Comments comments, HeaderRule rule)
    : name_(std::move(name)),
      columns_(columns),
      comments_(comments),
      lines_(std::move(source), LineReader::kBufferBytes, comments),
      layout_(read_text_layout(lines_, columns, rule)) {
  LineTable::rewind();
}

std::int64_t LineTable::rows() {
  LineTable::count_rows(Control{});
  return *rows_;
}

void LineTable::count_rows(const Control& control) {
  if (rows_) return;
  LineReader again = reopen();
  std::string_view line;
  std::int64_t count = 0;
  while (again.next(line)) {
    if (++count % kStepLines == 0) control.step("counting rows", static_cast<double>(count), 0);
  }
  rows_ = count - (layout_.has_header ? 1 : 0);
}

void LineTable::rewind() {
  row_ = 0;
  lines_.rewind();
  std::string_view header;
  if (layout_.has_header) lines_.next(header);
}

std::string LineTable::where(std::int64_t row) {
  LineReader again = reopen();
  find(again, row);
  return fmt::format("{}, line {}", name_, again.line_number());
}

std::string LineTable::row_text(std::int64_t row) {
  LineReader again = reopen();
  return shortened(find(again, row));
}

bool LineTable::next_row(std::string_view& line) {
  if (!lines_.next(line)) return false;
  if (row_++ > 0 && lines_.blank_lines() > 0 && layout_.file_cols == 1 &&
      !columns_.missing.empty()) {
    throw DataError("an empty line among values", place(), kBlankRemedy);
  }
  return true;
}

const TextFields& LineTable::split(std::string_view line, std::string_view remedy) {
  const TextFields::Status status = fields_.split(line, layout_.separator);
  if (status != TextFields::Status::kOk) {
    throw DataError(complaint_of(status), place(), kQuoteRemedy);
  }
  if (fields_.size() != layout_.targets.size()) {
    throw DataError(
        fmt::format("{} fields where the first line has {}", fields_.size(), layout_.file_cols),
        place(), remedy);
  }
  return fields_;
}

std::string LineTable::place() const {
  return fmt::format("{}, line {}", name_, lines_.line_number());
}

std::string LineTable::place(std::size_t field) const {
  return layout_.file_cols > 1 ? fmt::format("{}, field {}", place(), field + 1) : place();
}

LineReader LineTable::reopen() const {
  return LineReader(lines_.source().reopen(), LineReader::kBufferBytes, comments_);
}

std::string_view LineTable::find(LineReader& lines, std::int64_t row) const {
  std::string_view line;
  for (std::int64_t i = 0; i <= row + (layout_.has_header ? 1 : 0); ++i) lines.next(line);
  return line;
}

}  // namespace ooc
