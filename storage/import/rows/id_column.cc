#include "storage/import/rows/id_column.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

namespace ooc {
namespace {

constexpr std::int64_t kFewRows = 8;  // ascend by chance

// How many integers round to this fp32 number, at most.
double integers_at(float value) {
  const float gap =
      std::nextafter(std::abs(value), std::numeric_limits<float>::infinity()) - std::abs(value);
  return gap > 1 ? gap + 1.0 : 1.0;
}

}  // namespace

void IdColumn::look(std::span<const float> rows, std::int64_t cols) {
  for (std::size_t at = 0; whole_ && at < rows.size(); at += static_cast<std::size_t>(cols)) {
    take(rows[at] + 0.0f);  // -0 is 0
  }
}

void IdColumn::take(float value) {
  whole_ = std::isfinite(value) && value == std::trunc(value);
  repeats_ = rows_ > 0 && value == last_ ? repeats_ + 1 : 1;
  ascending_ = ascending_ && (rows_ == 0 || value >= last_) &&
               (repeats_ == 1 || static_cast<double>(repeats_) <= integers_at(value));
  last_ = value;
  const auto bits = [&](float number) { return hash_.bits(std::bit_cast<std::uint32_t>(number)); };
  difference_ += bits(value) - bits(static_cast<float>(rows_++));
}

bool IdColumn::found() const {
  return rows_ >= kFewRows && whole_ && (ascending_ || difference_ == 0);
}

bool seems_to_hold_ids(const TableReader& table, const IdColumn& column) {
  return table.cols() > 1 && table.has_all_columns() &&
         (is_id_name(table.first_name()) || column.found());
}

std::string id_column_remedy(const TableReader& table, std::string_view part) {
  if (!is_text_name(table.name())) {
    return fmt::format("if it does, save it apart for --ids FILE and the other columns as {}",
                       part);
  }
  const std::string_view name = table.first_name();
  const std::string others = table.cols() > 2 ? fmt::format("2-{}", table.cols()) : "2";
  return fmt::format("if it does, give --id {}, or choose the columns of {}, such as {}:{}",
                     name.empty() ? "1" : name, part, table.name(), others);
}

std::string id_column_warning(const TableReader& table, std::string_view part,
                              const IdColumn& column) {
  if (!seems_to_hold_ids(table, column)) return {};
  return fmt::format("the first column of {} seems to hold ids, and is read as {}: {}",
                     table.name(), part, id_column_remedy(table, part));
}

}  // namespace ooc
