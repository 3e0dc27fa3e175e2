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
  if (table.kind() == ElementKind::kString) {
    throw DataError("strings lie where features are needed", table.name(), "save them as numbers");
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

FeatureStream::FeatureStream(TableReader& table, FeatureNorm norm, Missing missing,
                             const Control& control)
    : table_(table), norm_(norm), missing_(missing) {
  check_feature_cols(table);
  if (norm == FeatureNorm::kStandard || missing == Missing::kAsMean) measure(control);
}

template <class Enum, std::size_t N>
Enum enum_of(const std::array<std::string_view, N>& names, std::string_view word) {
  const auto found = std::find(names.begin(), names.end(), word);
  OOC_CHECK(found != names.end());
  return static_cast<Enum>(found - names.begin());
}

FeatureStream::FeatureStream(TableReader& table, const FeatureScaling& scaling)
    : table_(table),
      norm_(enum_of<FeatureNorm>(kFeatureNormNames, scaling.norm)),
      missing_(enum_of<Missing>(kMissingNames, scaling.missing)),
      mean_(scaling.mean),
      scale_(scaling.factor) {
  check_feature_cols(table);
  if (mean_.empty() || std::ssize(mean_) == cols()) return;
  throw DataError(
      fmt::format("features of {} columns, --feature-norm-from is of {}", cols(), mean_.size()),
      table.name(), "give the columns that the other graph has");
}

FeatureScaling FeatureStream::scaling() const {
  return {std::string(kFeatureNormNames[static_cast<std::size_t>(norm_)]),
          std::string(kMissingNames[static_cast<std::size_t>(missing_)]), mean_, scale_};
}

// Welford's running mean and squared deviation of every column.
void FeatureStream::measure(const Control& control) {
  const auto width = static_cast<std::size_t>(cols());
  std::vector<double> mean(width, 0.0), squares(width, 0.0), counts(width, 0.0);
  const std::size_t block_rows = std::max<std::size_t>(1, kBufferFloats / width);
  std::vector<float> block(block_rows * width);
  const auto total = static_cast<double>(table_.rows());
  while (const std::int64_t count = read(block)) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(count) * width; ++at) {
      const std::size_t col = at % width;
      const double value = block[at];
      if (std::isnan(value)) continue;
      const double delta = value - mean[col];
      mean[col] += delta / ++counts[col];
      squares[col] += delta * (value - mean[col]);
    }
    control.step("measuring features", static_cast<double>(row_), total);
  }
  mean_ = std::move(mean);
  scale_.resize(width);
  for (std::size_t col = 0; col < width; ++col) {
    const double deviation = std::sqrt(squares[col] / static_cast<double>(row_));
    scale_[col] = deviation > 0 ? 1.0 / deviation : 0.0;
  }
  table_.rewind();
  row_ = 0;
  id_column_ = {};
}

std::int64_t FeatureStream::read(std::span<float> out) {
  const std::int64_t count = table_.read(out);
  const auto values = out.first(static_cast<std::size_t>(count * cols()));
  id_column_.look(values, cols());
  if (!all_finite(values)) {
    for (std::size_t at = 0; at < values.size(); ++at) {
      if (std::isinf(values[at]) || (std::isnan(values[at]) && missing_ == Missing::kError)) {
        refuse(values, static_cast<std::int64_t>(at));
      }
    }
    replace_missing(values);
  }
  row_ += count;
  return count;
}

// Means are known once the features are measured.
void FeatureStream::replace_missing(std::span<float> values) const {
  if (missing_ == Missing::kAsMean && mean_.empty()) return;
  const auto width = static_cast<std::size_t>(cols());
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (!std::isnan(values[at])) continue;
    values[at] = missing_ == Missing::kAsMean ? static_cast<float>(mean_[at % width]) : 0.0f;
  }
}

void FeatureStream::refuse(std::span<const float> values, std::int64_t place) {
  const float value = values[static_cast<std::size_t>(place)];
  throw DataError(fmt::format("{} in the features", value),
                  fmt::format("{}, column {}", table_.where(row_ + place / cols()), place % cols()),
                  std::isnan(value) ? "features must be numbers; --missing zero or mean says what "
                                      "stands for those that are missing"
                                    : "features must be finite numbers");
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
