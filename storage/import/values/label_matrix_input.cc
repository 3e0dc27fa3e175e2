#include "storage/import/values/label_matrix_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "storage/base/errors.h"
#include "storage/import/rows/id_column.h"

namespace ooc {
namespace {

constexpr std::size_t kBufferFloats = 1 << 20;

bool is_missing_bit(float value) { return std::isnan(value) || value == -1; }

[[noreturn]] void refuse(TableReader& table, std::int64_t row, std::int64_t col,
                         std::string_view what, std::string_view remedy) {
  throw DataError(what, fmt::format("{}, column {}", table.where(row), col), remedy);
}

void check_columns(TableReader& table, std::int64_t least) {
  if (table.cols() >= least && table.cols() <= kMaxLabelColumns && !table.stated_vertices()) return;
  throw DataError("not a matrix of labels",
                  fmt::format("{}, shape ({}, {})", table.name(), table.rows(), table.cols()),
                  fmt::format("give {} to {} columns", least, kMaxLabelColumns));
}

// Calls visit(first row, rows of values) for blocks of rows.
template <class Visit>
void for_each_block(TableReader& table, std::string_view phase, const Control& control,
                    Visit&& visit) {
  const auto cols = static_cast<std::size_t>(table.cols());
  std::vector<float> block(std::max<std::size_t>(1, kBufferFloats / cols) * cols);
  std::int64_t row = 0;
  while (const std::int64_t count = table.read(std::span<float>(block))) {
    visit(row, std::span<const float>(block).first(static_cast<std::size_t>(count) * cols));
    row += count;
    control.step(phase, static_cast<double>(row),
                 static_cast<double>(table.known_rows().value_or(0)));
  }
}

// An entry as it is stored.
std::uint8_t stored_bit(TableReader& table, std::int64_t row, std::int64_t col, float value) {
  if (is_missing_bit(value)) return kUnlabelled;
  if (value == 0 || value == 1) return static_cast<std::uint8_t>(value);
  const bool text = is_text_name(table.name()) && table.has_all_columns();
  refuse(
      table, row, col, fmt::format("{} in a matrix of labels", value),
      fmt::format("entries are 0 and 1, NaN or -1 where there is none; for numbers to predict "
                  "give --label-kind values{}",
                  text ? fmt::format(", and for one column of them {}:COLUMN", table.name()) : ""));
}

float stored_value(TableReader& table, std::int64_t row, std::int64_t col, float value) {
  if (!std::isinf(value)) return value;
  refuse(table, row, col, fmt::format("{} is no value to predict", value),
         "values are finite, NaN where there is none");
}

// What the entries of labels are.
class LabelSurvey {
 public:
  void add(std::int64_t row, std::span<const float> entries) {
    std::size_t ones = 0, missing = 0;
    for (std::size_t col = 0; col < entries.size(); ++col) {
      const float value = entries[col];
      ones += value == 1 ? 1 : 0;
      missing += is_missing_bit(value) ? 1 : 0;
      if (is_missing_bit(value) || value == 0 || value == 1) continue;
      fractions_ = fractions_ || value != std::trunc(value) || std::isinf(value);
      if (!number_) number_ = {row, static_cast<std::int64_t>(col), value};
    }
    if (missing == entries.size()) return;
    labelled_ = true;
    one_one_ = one_one_ && missing == 0 && ones == 1;
  }

  bool has_fractions() const { return fractions_; }
  bool has_numbers() const { return number_.has_value(); }
  bool is_one_hot() const { return labelled_ && one_one_; }
  // Throws where an entry is neither 0 nor 1 nor missing.
  void refuse_numbers(TableReader& table) const {
    if (number_) stored_bit(table, number_->row, number_->col, number_->value);
  }

 private:
  struct Entry {
    std::int64_t row = 0, col = 0;
    float value = 0;
  };
  bool fractions_ = false;
  bool labelled_ = false;        // a row is
  bool one_one_ = true;          // in each of those rows
  std::optional<Entry> number_;  // the first that is neither 0 nor 1
};

template <class T, class Stored, class IsMissing>
void stream(TableReader& table, const Control& control, const LabelSink& sink, Stored&& stored,
            IsMissing&& is_missing) {
  const auto cols = static_cast<std::size_t>(table.cols());
  std::vector<T> out;
  std::vector<std::int32_t> labelled;
  for_each_block(table, "reading labels", control,
                 [&](std::int64_t first, std::span<const float> values) {
                   out.resize(values.size());
                   labelled.assign(values.size() / cols, 0);
                   for (std::size_t i = 0; i < values.size(); ++i) {
                     const std::size_t row = i / cols;
                     out[i] = stored(table, first + static_cast<std::int64_t>(row),
                                     static_cast<std::int64_t>(i % cols), values[i]);
                     if (!is_missing(out[i])) ++labelled[row];
                   }
                   sink(std::as_bytes(std::span(out)), labelled);
                 });
}

}  // namespace

DetectedLabels detect_labels(TableReader& table, const Control& control) {
  if (table.cols() == 0 || table.stated_vertices()) return {};  // read_labels() refuses it
  const bool one_column = table.cols() == 1;
  // The type of text is that of its first row alone.
  if (one_column && table.kind() != ElementKind::kFloat && !is_text_name(table.name())) return {};
  if (!one_column) check_columns(table, 2);
  const auto cols = static_cast<std::size_t>(table.cols());
  LabelSurvey survey;
  IdColumn ids;
  for_each_block(
      table, "looking at labels", control, [&](std::int64_t first, std::span<const float> values) {
        ids.look(values, table.cols());
        for (std::size_t at = 0; at < values.size(); at += cols) {
          survey.add(first + static_cast<std::int64_t>(at / cols), values.subspan(at, cols));
        }
      });
  if (!survey.has_fractions() && !one_column) {
    if (survey.has_numbers() && seems_to_hold_ids(table, ids)) {
      throw DataError("the first column of the labels seems to hold ids", table.name(),
                      id_column_remedy(table, "labels"));
    }
    survey.refuse_numbers(table);
  }
  table.rewind();
  if (survey.has_fractions()) return {LabelChoice::kValues};
  if (one_column) return {};
  return {LabelChoice::kMulti, survey.is_one_hot()};
}

void read_label_matrix(TableReader& table, LabelKind kind, const Control& control,
                       const LabelSink& sink) {
  check_columns(table, 1);
  if (kind == LabelKind::kMulti) {
    stream<std::uint8_t>(table, control, sink, stored_bit,
                         [](std::uint8_t bit) { return bit == kUnlabelled; });
  } else {
    stream<float>(table, control, sink, stored_value,
                  [](float value) { return std::isnan(value); });
  }
}

std::vector<std::int32_t> read_one_hot(TableReader& table, const Control& control) {
  check_columns(table, 2);
  const auto cols = static_cast<std::size_t>(table.cols());
  std::vector<std::int32_t> labels;
  const LabelSink sink = [&](std::span<const std::byte> rows, std::span<const std::int32_t>) {
    const auto* bits = reinterpret_cast<const std::uint8_t*>(rows.data());
    for (const std::uint8_t* row = bits; row != bits + rows.size(); row += cols) {
      const std::uint8_t* const one = std::find(row, row + cols, std::uint8_t{1});
      if (std::count(row, row + cols, std::uint8_t{1}) > 1) {
        throw DataError("two 1 in a row of one-hot labels",
                        table.where(static_cast<std::int64_t>(labels.size())),
                        "for several classes a vertex give --label-kind multi");
      }
      labels.push_back(one == row + cols ? -1 : static_cast<std::int32_t>(one - row));
    }
  };
  read_label_matrix(table, LabelKind::kMulti, control, sink);
  return labels;
}

}  // namespace ooc
