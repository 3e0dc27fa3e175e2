#include "storage/import/values/multi_labels_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "storage/base/errors.h"
#include "storage/format/manifest.h"

namespace ooc {
namespace {

constexpr std::size_t kBufferFloats = 1 << 20;

bool is_unlabelled(float value) { return std::isnan(value) || value == -1; }

[[noreturn]] void refuse(TableReader& table, std::int64_t row, std::size_t col,
                         std::string_view what, std::string_view remedy) {
  throw DataError(what, fmt::format("{}, column {}", table.where(row), col), remedy);
}

}  // namespace

MultiLabels read_multi_labels(TableReader& table, const Control& control,
                              const MultiLabelSink& sink) {
  if (table.cols() < 2 || table.cols() > kMaxMultiLabels || table.stated_vertices()) {
    throw DataError("not a matrix of labels",
                    fmt::format("{}, shape ({}, {})", table.name(), table.rows(), table.cols()),
                    fmt::format("give 2 to {} columns of 0 and 1", kMaxMultiLabels));
  }
  MultiLabels labels;
  labels.classes = table.cols();
  const auto cols = static_cast<std::size_t>(table.cols());
  std::vector<float> block(std::max<std::size_t>(1, kBufferFloats / cols) * cols);
  std::vector<std::uint8_t> bytes(block.size());
  std::int64_t row = 0;
  while (const std::int64_t count = table.read(std::span<float>(block))) {
    for (std::int64_t i = 0; i < count; ++i, ++row) {
      const auto values = std::span(block).subspan(static_cast<std::size_t>(i) * cols, cols);
      const bool labelled = !is_unlabelled(values[0]);
      for (std::size_t col = 0; col < cols; ++col) {
        if (is_unlabelled(values[col]) == labelled) {
          refuse(table, row, col, "a vertex that is labelled in part",
                 "a row holds 0 and 1, or nothing but NaN or -1");
        }
        if (labelled && values[col] != 0 && values[col] != 1) {
          refuse(table, row, col, fmt::format("{} in a matrix of labels", values[col]),
                 "a row holds 0 and 1, or nothing but NaN or -1");
        }
        bytes[static_cast<std::size_t>(i) * cols + col] =
            labelled ? static_cast<std::uint8_t>(values[col]) : kUnlabelled;
      }
      labels.labelled.push_back(labelled ? 1 : 0);
    }
    sink(std::span(bytes).first(static_cast<std::size_t>(count) * cols));
    control.step("reading labels", static_cast<double>(row),
                 static_cast<double>(table.known_rows().value_or(0)));
  }
  return labels;
}

}  // namespace ooc
