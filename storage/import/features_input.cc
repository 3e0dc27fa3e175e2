#include "storage/import/features_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "storage/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kBufferBytes = 4 << 20;

void divide_by_norm(std::span<float> row, FeatureNorm norm) {
  double sum = 0;
  for (const float value : row) {
    const double wide = value;
    sum += norm == FeatureNorm::kRow ? std::abs(wide) : wide * wide;
  }
  if (sum == 0) return;
  const double length = norm == FeatureNorm::kRow ? sum : std::sqrt(sum);
  for (float& value : row) value = static_cast<float>(value / length);
}

}  // namespace

void check_feature_cols(const TableReader& table) {
  if (table.stated_vertices()) {
    throw DataError("a matrix of edges lies where features are needed", table.name(),
                    "write them as a dense matrix, or as a SciPy .npz in CSR");
  }
  if (table.cols() == 0) {
    throw DataError("the features have no columns", table.name(),
                    "save them as [V, F], or leave them out");
  }
  if (table.cols() > kMaxFeatureCols) {
    throw DataError(fmt::format("the features have {} columns", table.cols()), table.name(),
                    fmt::format("at most {} are possible", kMaxFeatureCols));
  }
}

std::int64_t feature_rows_at_once(std::int64_t cols) {
  const std::int64_t row_bytes = cols * static_cast<std::int64_t>(sizeof(float));
  return std::clamp<std::int64_t>(kBufferBytes / std::max<std::int64_t>(1, row_bytes), 1, 16384);
}

FeatureStream::FeatureStream(TableReader& table, FeatureNorm norm, const Control& control)
    : table_(table), norm_(norm) {
  check_feature_cols(table);
  if (norm == FeatureNorm::kStandard) measure(control);
}

// Welford's running mean and squared deviation of every column.
void FeatureStream::measure(const Control& control) {
  const std::int64_t width = cols();
  mean_.assign(static_cast<std::size_t>(width), 0.0);
  std::vector<double> squares(static_cast<std::size_t>(width), 0.0);
  std::vector<float> block(static_cast<std::size_t>(feature_rows_at_once(width) * width));
  const auto total = static_cast<double>(table_.rows());
  while (const std::int64_t count = read_finite(block)) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double share = 1.0 / static_cast<double>(row_ - count + i + 1);
      const float* const row = block.data() + i * width;
      for (std::int64_t col = 0; col < width; ++col) {
        const double delta = row[col] - mean_[col];
        mean_[col] += delta * share;
        squares[col] += delta * (row[col] - mean_[col]);
      }
    }
    control.step("measuring features", static_cast<double>(row_), total);
  }
  scale_.resize(static_cast<std::size_t>(width));
  for (std::int64_t col = 0; col < width; ++col) {
    const double deviation = std::sqrt(squares[col] / static_cast<double>(row_));
    scale_[col] = deviation > 0 ? 1.0 / deviation : 0.0;
  }
  table_.rewind();
  row_ = 0;
}

std::int64_t FeatureStream::read_finite(std::span<float> out) {
  const std::int64_t count = table_.read(out);
  for (std::int64_t i = 0; i < count * cols(); ++i) {
    if (std::isfinite(out[i])) continue;
    throw DataError(fmt::format("{} in the features", out[i]),
                    fmt::format("{}, column {}", table_.where(row_ + i / cols()), i % cols()),
                    "features must be finite numbers");
  }
  row_ += count;
  return count;
}

std::int64_t FeatureStream::read(std::span<float> out) {
  const std::int64_t count = read_finite(out);
  const std::int64_t width = cols();
  if (norm_ == FeatureNorm::kNone) return count;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::span<float> row =
        out.subspan(static_cast<std::size_t>(i * width), static_cast<std::size_t>(width));
    if (norm_ != FeatureNorm::kStandard) {
      divide_by_norm(row, norm_);
      continue;
    }
    for (std::int64_t col = 0; col < width; ++col) {
      row[col] = static_cast<float>((row[col] - mean_[col]) * scale_[col]);
    }
  }
  return count;
}

}  // namespace ooc
