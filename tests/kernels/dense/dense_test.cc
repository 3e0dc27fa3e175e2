#include "tests/kernels/naive_product.h"
#include "tests/kernels/run_kernel.h"
#include "tests/support/cases.h"

namespace ooc::testing {
namespace {

Dense filled(std::int64_t rows, std::int64_t cols, double value) {
  Dense dense(rows, cols);
  for (double& element : dense.values) element = value;
  return dense;
}

}  // namespace

TEMPLATE_TEST_CASE("dense: matmul equals the naive product for every pair of widths", "", float,
                   double) {
  for (const std::int64_t k : kWidths) {
    for (const std::int64_t m : kWidths) {
      const Dense x = random_dense(kRows, k, 1);
      const Dense w = random_dense(k, m, 2);
      const Dense before = filled(kRows, m, std::nan(""));
      const Dense expected = product(x, w);
      CHECK_CLOSE(run_kernel<TestType>("matmul", {x, w}, before), expected, tolerance<TestType>(k));
      const Dense by_transpose = run_kernel<TestType>("matmul", {x, transposed(w)}, before,
                                                      {.attributes = {.transpose = true}});
      CHECK_CLOSE(by_transpose, expected, tolerance<TestType>(k));
    }
  }
}

TEMPLATE_TEST_CASE("dense: matmul_reduce adds X^T G to its output", "", float, double) {
  for (const std::int64_t k : kWidths) {
    for (const std::int64_t m : kWidths) {
      const Dense x = random_dense(kRows, k, 3);
      const Dense g = random_dense(kRows, m, 4);
      Dense expected = product(transposed(x), g);
      for (double& value : expected.values) value += 0.5;
      const Dense actual = run_kernel<TestType>("matmul_reduce", {x, g}, filled(k, m, 0.5));
      CHECK_CLOSE(actual, expected, tolerance<TestType>(kRows));
    }
  }
}

TEMPLATE_TEST_CASE("dense: bias and column_sum", "", float, double) {
  for (const std::int64_t d : kWidths) {
    const Dense x = random_dense(kRows, d, 5);
    const Dense b = random_dense(1, d, 6);
    Dense shifted(kRows, d);
    Dense sums = filled(1, d, 0.25);
    for (std::int64_t c = 0; c < d; ++c) {
      for (std::int64_t i = 0; i < kRows; ++i) {
        shifted(i, c) = x(i, c) + b(0, c);
        sums(0, c) += x(i, c);
      }
    }
    CHECK_CLOSE(run_kernel<TestType>("bias", {x, b}, Dense(kRows, d)), shifted,
                tolerance<TestType>());
    CHECK_CLOSE(run_kernel<TestType>("column_sum", {x}, filled(1, d, 0.25)), sums,
                tolerance<TestType>(kRows));
  }
}

TEST_CASE("dense: no rows leave a reduction alone") {
  const Dense none(0, 40);
  const Dense before = filled(40, 40, 0.5);
  CHECK(run_kernel<float>("matmul_reduce", {none, none}, before).values == before.values);
  CHECK(run_kernel<float>("column_sum", {none}, filled(1, 40, 0.5)).values ==
        filled(1, 40, 0.5).values);
  CHECK(run_kernel<float>("matmul", {none, before}, none).values.empty());
}

// More rows than a tile holds, several tiles of columns on either side, one slice on either side,
// last slices of every width.
TEMPLATE_TEST_CASE("dense: large row groups and wide operands equal the naive product", "", float,
                   double) {
  struct Shape {
    std::int64_t rows, k, m;
  };
  test::Cases cases(4);
  for (const Shape& shape :
       {Shape{2048, 100, 47}, Shape{513, 32, 32}, Shape{1100, 260, 250}, Shape{257, 602, 16},
        Shape{300, 289, 583}, Shape{600, 20, 300}, Shape{128, 1433, 7}, Shape{256, 256, 64}}) {
    if (!cases.next()) continue;
    const Dense x = random_dense(shape.rows, shape.k, 7);
    const Dense w = random_dense(shape.k, shape.m, 8);
    const Dense g = random_dense(shape.rows, shape.m, 9);
    const Dense before = filled(shape.rows, shape.m, std::nan(""));
    const Dense expected = product(x, w);
    CHECK_CLOSE(run_kernel<TestType>("matmul", {x, w}, before), expected,
                tolerance<TestType>(shape.k));
    CHECK_CLOSE(run_kernel<TestType>("matmul", {x, transposed(w)}, before,
                                     {.attributes = {.transpose = true}}),
                expected, tolerance<TestType>(shape.k));
    Dense sums = product(transposed(x), g);
    for (double& value : sums.values) value += 0.5;
    CHECK_CLOSE(run_kernel<TestType>("matmul_reduce", {x, g}, filled(shape.k, shape.m, 0.5)), sums,
                tolerance<TestType>(shape.rows));
  }
}

}  // namespace ooc::testing
