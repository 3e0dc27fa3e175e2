#include "storage/import/rows/computed_features.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "storage/base/counter_random.h"
#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"
#include "storage/import/rows/features_input.h"

namespace ooc {
namespace {

constexpr std::string_view kDegrees = "degrees";
constexpr std::string_view kRandom = "random:";
constexpr std::uint64_t kFeatureStream = 0x4645;
constexpr std::int64_t kDegreesAtOnce = 64 << 10;

struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

class ComputedTable final : public TableReader {
 public:
  // Fills rows from `begin` on.
  using Fill = std::function<void(std::int64_t begin, std::span<float> rows)>;

  ComputedTable(std::string name, Shape shape, Fill fill)
      : name_(std::move(name)), shape_(shape), fill_(std::move(fill)) {}

  const std::string& name() const override { return name_; }
  std::int64_t rows() override { return shape_.rows; }
  std::optional<std::int64_t> known_rows() const override { return shape_.rows; }
  std::int64_t cols() const override { return shape_.cols; }
  ElementKind kind() const override { return ElementKind::kFloat; }
  std::int64_t read(std::span<std::int64_t>) override {
    throw DataError("features where integers are needed", name_, "give another file");
  }
  std::int64_t read(std::span<float> out) override {
    const std::int64_t count =
        std::min(static_cast<std::int64_t>(out.size()) / shape_.cols, shape_.rows - row_);
    fill_(row_, out.first(static_cast<std::size_t>(count * shape_.cols)));
    row_ += count;
    return count;
  }
  void rewind() override { row_ = 0; }
  std::string where(std::int64_t row) override { return fmt::format("{}, row {}", name_, row); }

 private:
  std::string name_;
  Shape shape_;
  Fill fill_;
  std::int64_t row_ = 0;  // read next
};

}  // namespace

std::optional<ComputedFeatures> parse_computed_features(std::string_view input) {
  if (input == kDegrees) return ComputedFeatures{std::string(input), 0};
  if (!input.starts_with(kRandom)) return std::nullopt;
  const std::string_view number = input.substr(kRandom.size());
  std::int64_t cols = 0;
  const char* const end = number.data() + number.size();
  const auto [stop, status] = std::from_chars(number.data(), end, cols);
  if (status != std::errc() || stop != end || cols < 1 || cols > kMaxFeatureCols) {
    throw UsageError(
        fmt::format("--features {} is not possible", input), "command line",
        fmt::format("give a number of columns from 1 to {}, such as random:64", kMaxFeatureCols));
  }
  return ComputedFeatures{std::string(input), cols};
}

std::unique_ptr<TableReader> degree_features(std::shared_ptr<const VertexTensorFile> degrees) {
  const auto fill = [degrees](std::int64_t begin, std::span<float> rows) {
    std::vector<std::int32_t> counts;
    for (std::size_t at = 0; at < rows.size(); at += 2 * kDegreesAtOnce) {
      const auto part =
          rows.subspan(at, std::min<std::size_t>(rows.size() - at, 2 * kDegreesAtOnce));
      const std::size_t count = part.size() / 2;
      counts.resize(count * kDegreeColumns);
      degrees->read_rows(begin + static_cast<std::int64_t>(at / 2),
                         static_cast<std::int64_t>(count), counts.data());
      for (std::size_t i = 0; i < count; ++i) {
        const std::int32_t* const row = counts.data() + i * kDegreeColumns;
        const double loops = row[kSelfLoops];
        part[2 * i] = static_cast<float>(std::log1p(row[kInDegree] + loops));
        part[2 * i + 1] = static_cast<float>(std::log1p(row[kOutDegree] + loops));
      }
    }
  };
  return std::make_unique<ComputedTable>(std::string(kDegrees), Shape{degrees->layout().rows, 2},
                                         fill);
}

std::unique_ptr<TableReader> random_features(std::int64_t vertices, std::int64_t cols,
                                             std::uint64_t seed) {
  const auto fill = [cols, random = CounterRandom(seed, kFeatureStream)](std::int64_t begin,
                                                                         std::span<float> rows) {
    const auto width = static_cast<std::size_t>(cols);
    tbb::parallel_for(std::size_t{0}, rows.size() / width, [&](std::size_t i) {
      random.normal_row(static_cast<std::uint64_t>(begin) + i, 1.0f,
                        rows.subspan(i * width, width));
    });
  };
  return std::make_unique<ComputedTable>(fmt::format("{}{}", kRandom, cols), Shape{vertices, cols},
                                         fill);
}

}  // namespace ooc
