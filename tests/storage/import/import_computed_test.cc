// A first column of ids, and features that are computed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>

#include "storage/base/errors.h"
#include "storage/import/rows/computed_features.h"
#include "storage/import/rows/id_column.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::error_of;

// Of rows of two columns, in blocks of three rows.
bool found_in(const std::vector<double>& numbers) {
  IdColumn column;
  std::vector<float> rows;
  for (const double number : numbers) {
    rows.push_back(static_cast<float>(number));
    rows.push_back(0.5f);
  }
  for (std::size_t at = 0; at < rows.size(); at += 6) {
    column.look(
        std::span<const float>(rows).subspan(at, std::min<std::size_t>(6, rows.size() - at)), 2);
  }
  return column.found();
}

std::vector<double> numbers_from(double first, std::size_t count, double step = 1) {
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = first + step * static_cast<double>(i);
  return numbers;
}

TEST_CASE("id_column: numbers from 0 in any order are ids, and any that ascend") {
  std::vector<double> numbers = numbers_from(0, 1000);
  CHECK(found_in(numbers));
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(1));
  CHECK(found_in(numbers));
  for (double& number : numbers) number += 1;  // 1 to V in any order may be anything
  CHECK_FALSE(found_in(numbers));
  CHECK(found_in(numbers_from(-5, 20)));
  CHECK(found_in(numbers_from(17, 20, 3)));
  CHECK(found_in({0, 1, 5, 6, 90, 91, 92, 1000}));
}

TEST_CASE("id_column: beyond 2^24 fp32 makes one number of several ids") {
  CHECK(found_in(numbers_from(230425980, 1000)));
  CHECK(found_in(numbers_from(std::pow(2.0, 40), 1000, 7)));
  std::vector<double> numbers = numbers_from(0, (1 << 24) + 5000);
  std::shuffle(numbers.begin() + (1 << 23), numbers.end(), std::mt19937(1));
  CHECK(found_in(numbers));
  CHECK_FALSE(found_in(numbers_from(230425980, 1000, 0)));  // 1000 times the same
}

TEST_CASE("id_column: other numbers are none") {
  std::vector<double> numbers = numbers_from(0, 1000);
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(1));
  numbers[500] = numbers[501];
  CHECK_FALSE(found_in(numbers));
  CHECK_FALSE(found_in(numbers_from(0, 100, 0.5)));
  CHECK_FALSE(found_in({0, 1, 2, 3, 4, 5, 6, NAN, 8, 9}));
  CHECK_FALSE(found_in({0, 1, 2, 3, 3, 4, 5, 6, 7, 8}));
  CHECK_FALSE(found_in({0, 1, 2}));  // too few to tell
}

TEST_CASE("computed features: what names them") {
  CHECK(parse_computed_features("degrees")->random_cols == 0);
  CHECK(parse_computed_features("random:16")->random_cols == 16);
  CHECK_FALSE(parse_computed_features("./degrees"));
  CHECK_FALSE(parse_computed_features("random.npy"));
  for (const char* const wrong : {"random:", "random:0", "random:x", "random:1048577"}) {
    CHECK_THAT(error_of<UsageError>([&] { parse_computed_features(wrong); }),
               Contains("is not possible") && Contains("such as random:64"));
  }
}

TEST_CASE("computed features: random ones depend on seed, row and column alone") {
  const auto read = [](std::uint64_t seed, std::int64_t rows_at_once) {
    const auto table = random_features(1000, 7, seed);
    std::vector<float> all, block(static_cast<std::size_t>(rows_at_once) * 7);
    while (const std::int64_t count = table->read(std::span<float>(block))) {
      all.insert(all.end(), block.begin(), block.begin() + count * 7);
    }
    return all;
  };
  const std::vector<float> numbers = read(3, 1000);
  CHECK(numbers == read(3, 13));
  CHECK(numbers != read(4, 1000));
  double sum = 0, squares = 0;
  std::size_t within_one = 0;
  for (const double number : numbers) {
    sum += number;
    squares += number * number;
    within_one += std::abs(number) < 1;
  }
  const auto count = static_cast<double>(numbers.size());
  CHECK(std::abs(sum / count) < 4 / std::sqrt(count));
  CHECK(std::abs(squares / count - 1) < 4 * std::sqrt(2 / count));
  CHECK(static_cast<double>(within_one) / count == Approx(0.6827).margin(0.03));
}

}  // namespace
}  // namespace ooc
