#include "storage/import/rows/features_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kBufferFloats = 1 << 20;

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

// Without a branch, so that it runs at the speed of memory.
bool all_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t found = 0;
  for (const float value : values) {
    found |= (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent ? 1u : 0u;
  }
  return found == 0;
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
  const std::int64_t block_rows = std::max<std::int64_t>(1, kBufferFloats / width);
  std::vector<float> block(static_cast<std::size_t>(block_rows * width));
  const auto total = static_cast<double>(table_.rows());
  while (const std::int64_t count = read(block)) {
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

std::int64_t FeatureStream::read(std::span<float> out) {
  const std::int64_t count = table_.read(out);
  const auto values = out.first(static_cast<std::size_t>(count * cols()));
  if (!all_finite(values)) refuse_infinite(values);
  row_ += count;
  return count;
}

void FeatureStream::refuse_infinite(std::span<const float> values) {
  const auto found =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  const std::int64_t place = found - values.begin();
  throw DataError(fmt::format("{} in the features", *found),
                  fmt::format("{}, column {}", table_.where(row_ + place / cols()), place % cols()),
                  "features must be finite numbers");
}

void FeatureStream::normalise(std::span<float> rows) const {
  if (norm_ == FeatureNorm::kNone) return;
  const auto width = static_cast<std::size_t>(table_.cols());
  for (std::size_t begin = 0; begin < rows.size(); begin += width) {
    const std::span<float> row = rows.subspan(begin, width);
    if (norm_ != FeatureNorm::kStandard) {
      divide_by_norm(row, norm_);
      continue;
    }
    for (std::size_t col = 0; col < width; ++col) {
      row[col] = static_cast<float>((row[col] - mean_[col]) * scale_[col]);
    }
  }
}

}  // namespace ooc
