// What tables of text have in common: how their lines are laid out, counted and found again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "storage/import/decode/line_reader.h"
#include "storage/import/decode/text_fields.h"
#include "storage/import/decode/text_layout.h"
#include "storage/import/formats/table_reader.h"

namespace ooc {

class LineTable : public TableReader {
 public:
  const std::string& name() const override { return name_; }
  std::int64_t cols() const override { return layout_.cols; }
  bool has_all_columns() const override { return columns_.all(); }
  std::string_view first_name() const override { return layout_.first_name; }
  std::int64_t rows() override;
  std::optional<std::int64_t> known_rows() const override { return rows_; }
  void count_rows(const Control& control) override;
  void rewind() override;
  std::string where(std::int64_t row) override;
  std::string row_text(std::int64_t row) override;

 protected:
  // Reads the first lines, which `rule` judges, and rewinds.
  LineTable(std::unique_ptr<ByteSource> source, std::string name, const TextColumns& columns,
            LineReader::Comments comments, HeaderRule rule);

  const TextColumns& columns() const { return columns_; }
  const TextLayout& layout() const { return layout_; }
  void leave_out_columns() { layout_.cols = 0; }
  // The line of the next row. False at the end. Throws DataError for an empty line where each is a
  // value, and an empty one would say that there is none.
  bool next_row(std::string_view& line);
  // How many rows next_row() gave since the start.
  std::int64_t row() const { return row_; }
  // The fields of a line, which must be as many as the first one has; `remedy` says so.
  const TextFields& split(std::string_view line, std::string_view remedy);
  // The line of the last row, and with a field's number from 0.
  std::string place() const;
  std::string place(std::size_t field) const;

 private:
  LineReader reopen() const;
  // Reads on to the line of this row.
  std::string_view find(LineReader& lines, std::int64_t row) const;

  std::string name_;
  TextColumns columns_;
  LineReader::Comments comments_;
  LineReader lines_;
  TextLayout layout_;
  TextFields fields_;
  std::optional<std::int64_t> rows_;
  std::int64_t row_ = 0;  // read next
};

}  // namespace ooc
