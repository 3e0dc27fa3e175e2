#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "storage/base/errors.h"
#include "storage/import/rows/features_input.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::npy;

constexpr std::int64_t kRows = 1000;
constexpr std::int64_t kCols = 5;

// Column 0 is constant, row 7 zero but for it, column 1 has a large mean.
std::vector<float> make_features(float constant) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(kRows * kCols);
  for (std::int64_t i = 0; i < kRows * kCols; ++i) {
    values[i] = normal(random) + (i % kCols == 1 ? 10'000.0f : 0.0f);
    if (i % kCols == 0) values[i] = constant;
    if (i / kCols == 7 && i % kCols != 0) values[i] = 0;
  }
  return values;
}

std::vector<float> stream(const std::vector<float>& values, FeatureNorm norm) {
  test::MemoryFileSystem files;
  test::put_file(files, "x.npy", npy<float>({kRows, kCols}, values));
  const auto table = open_table(files, "x.npy");
  FeatureStream features(*table, norm, Missing::kError, Control{});
  std::vector<float> out, block(17 * kCols);
  while (const std::int64_t count = features.read(block)) {
    const std::span<float> rows(block.data(), static_cast<std::size_t>(count * kCols));
    features.normalise(rows);
    out.insert(out.end(), rows.begin(), rows.end());
  }
  return out;
}

TEST_CASE("features: no normalisation leaves every bit") {
  CHECK(stream(make_features(3), FeatureNorm::kNone) == make_features(3));
}

TEST_CASE("features: rows are divided by their L1 and L2 norms; zero rows stay") {
  const auto values = make_features(0);
  for (const FeatureNorm norm : {FeatureNorm::kRow, FeatureNorm::kL2}) {
    const auto out = stream(values, norm);
    for (std::int64_t row = 0; row < kRows; ++row) {
      double length = 0;
      for (std::int64_t col = 0; col < kCols; ++col) {
        const double x = values[row * kCols + col];
        length += norm == FeatureNorm::kRow ? std::fabs(x) : x * x;
      }
      if (norm == FeatureNorm::kL2) length = std::sqrt(length);
      for (std::int64_t col = 0; col < kCols; ++col) {
        const double expected = length == 0 ? 0 : values[row * kCols + col] / length;
        REQUIRE(out[row * kCols + col] == Approx(expected).margin(1e-12));
      }
    }
  }
}

TEST_CASE("features: columns get mean 0 and deviation 1; a constant one becomes 0") {
  const auto values = make_features(3);
  const auto out = stream(values, FeatureNorm::kStandard);
  for (std::int64_t col = 0; col < kCols; ++col) {
    long double mean = 0, square = 0;
    for (std::int64_t row = 0; row < kRows; ++row) mean += values[row * kCols + col];
    mean /= kRows;
    for (std::int64_t row = 0; row < kRows; ++row) {
      square += std::pow(values[row * kCols + col] - mean, 2);
    }
    const long double deviation = std::sqrt(square / kRows);
    for (std::int64_t row = 0; row < kRows; ++row) {
      const long double expected =
          deviation == 0 ? 0 : (values[row * kCols + col] - mean) / deviation;
      REQUIRE(out[row * kCols + col] == Approx(static_cast<double>(expected)).margin(1e-6));
    }
  }
}

TEST_CASE("features: NaN, infinities and no columns are refused") {
  test::MemoryFileSystem files;
  const auto message = [&](const std::string& name, const std::string& bytes, FeatureNorm norm) {
    test::put_file(files, name, bytes);
    const auto table = open_table(files, name);
    return test::error_of<DataError>([&] {
      FeatureStream features(*table, norm, Missing::kError, Control{});
      std::vector<float> block(2);
      while (features.read(block) > 0) {
      }
    });
  };
  for (const FeatureNorm norm : {FeatureNorm::kNone, FeatureNorm::kStandard}) {
    CHECK_THAT(message("x.npy", npy<float>({3, 2}, {0, 1, 2, 3, 4, NAN}), norm),
               Contains("nan in the features, x.npy, row 2, column 1;"));
    CHECK_THAT(message("x.csv", "0,1\n-inf,3\n", norm),
               Contains("-inf in the features, x.csv, line 2, column 0;"));
  }
  CHECK_THAT(message("x.npy", npy<float>({3, 0}, {}), FeatureNorm::kNone), Contains("no columns"));
}

}  // namespace
}  // namespace ooc
