#include <cmath>

#include "tests/kernels/run_kernel.h"

namespace ooc::testing {
namespace {

constexpr std::int64_t kColumns[] = {1, 5, 8, 32, 33, 70, 96};

Dense row_types(std::int64_t types) {
  Dense t(kRows, 1);
  for (std::int64_t i = 0; i < kRows; ++i) t(i, 0) = static_cast<double>(i * 5 % types);
  return t;
}

// What an output holds before: nothing that may stay.
Dense poisoned(std::int64_t cols) {
  Dense dense(kRows, cols);
  for (double& value : dense.values) value = std::nan("");
  return dense;
}

}  // namespace

TEMPLATE_TEST_CASE("columns: two matrices side by side", "", float, double) {
  for (const std::int64_t d : kColumns) {
    for (const std::int64_t e : kColumns) {
      INFO(d << " and " << e << " columns");
      const Dense a = random_dense(kRows, d, 1);
      const Dense b = random_dense(kRows, e, 2);
      Dense expected(kRows, d + e);
      for (std::int64_t i = 0; i < kRows; ++i) {
        for (std::int64_t c = 0; c < d + e; ++c) expected(i, c) = c < d ? a(i, c) : b(i, c - d);
      }
      CHECK(run_kernel<TestType>("concat", {a, b}, poisoned(d + e)).values == expected.values);
    }
  }
}

TEMPLATE_TEST_CASE("columns: a range is taken, and put in its place", "", float, double) {
  for (const std::int64_t d : kColumns) {
    const Dense x = random_dense(kRows, d, 1);
    for (const std::int64_t begin : {std::int64_t{0}, d / 3, d - 1}) {
      for (const std::int64_t m : {std::int64_t{1}, (d - begin + 1) / 2, d - begin}) {
        INFO("columns " << begin << " to " << begin + m << " of " << d);
        Dense taken(kRows, m);
        Dense placed(kRows, d);
        for (std::int64_t i = 0; i < kRows; ++i) {
          for (std::int64_t c = 0; c < m; ++c) {
            taken(i, c) = placed(i, begin + c) = x(i, begin + c);
          }
        }
        CHECK(run_kernel<TestType>("columns", {x}, poisoned(m),
                                   {.attributes = {.begin = begin, .cols = m}})
                  .values == taken.values);
        CHECK(run_kernel<TestType>("place_columns", {taken}, poisoned(d),
                                   {.attributes = {.begin = begin, .cols = d}})
                  .values == placed.values);
      }
    }
  }
}

TEMPLATE_TEST_CASE("columns: a row takes those of its type, and gives them back", "", float,
                   double) {
  for (const std::int64_t d : kColumns) {
    for (const std::int64_t types : {1, 3, 4}) {
      INFO(types << " types of " << d << " columns");
      const Dense x = random_dense(kRows, types * d, 1);
      const Dense t = row_types(types);
      Dense picked(kRows, d);
      Dense placed(kRows, types * d);
      for (std::int64_t i = 0; i < kRows; ++i) {
        const std::int64_t first = static_cast<std::int64_t>(t(i, 0)) * d;
        for (std::int64_t c = 0; c < d; ++c) {
          picked(i, c) = placed(i, first + c) = x(i, first + c);
        }
      }
      CHECK(run_kernel<TestType>("pick_type", {x, t}, poisoned(d), {.attributes = {.cols = d}})
                .values == picked.values);
      CHECK(run_kernel<TestType>("place_type", {picked, t}, poisoned(types * d),
                                 {.attributes = {.cols = types * d}})
                .values == placed.values);
    }
  }
}

}  // namespace ooc::testing
