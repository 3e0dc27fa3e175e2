#include "storage/import/values/split_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kBufferBytes = 1 << 20;

// One column of a table.
class ColumnTable final : public TableReader {
 public:
  ColumnTable(std::unique_ptr<TableReader> table, std::int64_t column)
      : table_(std::move(table)), column_(column) {}

  const std::string& name() const override { return table_->name(); }
  std::int64_t rows() override { return table_->rows(); }
  std::optional<std::int64_t> known_rows() const override { return table_->known_rows(); }
  void count_rows(const Control& control) override { table_->count_rows(control); }
  std::int64_t cols() const override { return 1; }
  ElementKind kind() const override { return table_->kind(); }
  std::int64_t read(std::span<std::int64_t> out) override { return read_column(integers_, out); }
  std::int64_t read(std::span<float> out) override { return read_column(reals_, out); }
  void rewind() override { table_->rewind(); }
  void read_nan_as(std::int64_t value) override { table_->read_nan_as(value); }
  std::string where(std::int64_t row) override {
    return fmt::format("{}, split {}", table_->where(row), column_);
  }
  std::string row_text(std::int64_t row) override { return table_->row_text(row); }

 private:
  template <class T>
  std::int64_t read_column(std::vector<T>& wide, std::span<T> out) {
    const std::int64_t cols = table_->cols();
    const std::int64_t step =
        std::max<std::int64_t>(1, kBufferBytes / (cols * std::int64_t{sizeof(T)}));
    std::int64_t done = 0;
    while (done < std::ssize(out)) {
      wide.resize(static_cast<std::size_t>(std::min(step, std::ssize(out) - done) * cols));
      const std::int64_t rows = table_->read(std::span(wide));
      for (std::int64_t i = 0; i < rows; ++i, ++done) {
        out[static_cast<std::size_t>(done)] = wide[static_cast<std::size_t>(i * cols + column_)];
      }
      if (rows == 0) break;
    }
    return done;
  }

  std::unique_ptr<TableReader> table_;
  std::int64_t column_;
  std::vector<std::int64_t> integers_;
  std::vector<float> reals_;
};

std::unique_ptr<TableReader> choose_split(std::unique_ptr<TableReader> table,
                                          std::optional<std::int64_t> index) {
  const std::string where =
      fmt::format("{}, shape ({}, {})", table->name(), table->rows(), table->cols());
  if (table->rows() == table->cols()) {
    throw DataError("a square mask doesn't say which side its splits are", where,
                    "save the split that you want as a vector");
  }
  const std::int64_t splits = std::min(table->rows(), table->cols());
  if (!index) {
    throw DataError(fmt::format("the mask holds {} splits", splits), where,
                    fmt::format("choose one with --split-index, from 0 to {}", splits - 1));
  }
  if (*index >= splits) {
    throw UsageError(fmt::format("--split-index {}, but there are {} splits", *index, splits),
                     where, fmt::format("give one from 0 to {}", splits - 1));
  }
  if (table->rows() == splits && !table->transpose()) {
    throw DataError("a file of this kind isn't read by columns", where,
                    "save the mask with a row a vertex");
  }
  return std::make_unique<ColumnTable>(std::move(table), *index);
}

}  // namespace

void choose_splits(SplitTables& tables, std::optional<std::int64_t> index) {
  bool chosen = false;
  for (std::unique_ptr<TableReader>& table : tables) {
    if (!table || table->cols() <= 1 || !is_mask(*table)) continue;
    table = choose_split(std::move(table), index);
    chosen = true;
  }
  if (chosen || !index) return;
  throw UsageError("--split-index, but no mask holds several splits", "command line",
                   "leave it out, or give masks [V, S] or [S, V]");
}

}  // namespace ooc
