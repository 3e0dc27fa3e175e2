#include <cmath>

#include "tests/kernels/run_kernel.h"

namespace ooc::testing {
namespace {

struct Shape {
  std::int64_t cols;
  std::int64_t heads;
};
// Heads narrower and wider than a slice, that cross slices, of one column, more than a slice of
// them.
constexpr Shape kShapes[] = {{1, 1},  {5, 1},  {8, 8},  {32, 4}, {32, 1},  {56, 8},  {70, 1},
                             {64, 4}, {96, 4}, {96, 8}, {66, 2}, {128, 2}, {40, 40}, {72, 36}};

template <class F>
Dense dense_of(std::int64_t rows, std::int64_t cols, F&& f) {
  Dense dense(rows, cols);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < cols; ++c) dense(i, c) = f(i, c);
  }
  return dense;
}

}  // namespace

TEMPLATE_TEST_CASE("heads: a factor and a sum of each head", "", float, double) {
  for (const auto& [d, heads] : kShapes) {
    INFO(d << " columns, " << heads << " heads");
    const std::int64_t width = d / heads;
    const Dense a = random_dense(kRows, d, 1);
    const Dense b = random_dense(kRows, d, 2);
    const Dense f = random_dense(kRows, heads, 3);
    const auto sums_of = [&](auto&& term) {
      return dense_of(kRows, heads, [&](std::int64_t i, std::int64_t head) {
        double sum = 0;
        for (std::int64_t c = 0; c < width; ++c) sum += term(i, head * width + c);
        return sum;
      });
    };
    CHECK_CLOSE(run_kernel<TestType>("scale_heads", {a, f}, Dense(kRows, d)),
                dense_of(kRows, d, [&](auto i, auto c) { return a(i, c) * f(i, c / width); }),
                tolerance<TestType>());
    CHECK_CLOSE(run_kernel<TestType>("head_dot", {a, b}, f, {.attributes = {.heads = heads}}),
                sums_of([&](auto i, auto c) { return a(i, c) * b(i, c); }),
                tolerance<TestType>(width));
    CHECK_CLOSE(run_kernel<TestType>("head_sum", {a}, f, {.attributes = {.heads = heads}}),
                sums_of([&](auto i, auto c) { return a(i, c); }), tolerance<TestType>(width));
    CHECK(run_kernel<TestType>("head_broadcast", {f}, a, {.attributes = {.cols = d}}).values ==
          dense_of(kRows, d, [&](auto i, auto c) { return f(i, c / width); }).values);
  }
}

TEMPLATE_TEST_CASE("heads: their mean, and its adjoint", "", float, double) {
  for (const auto& [d, heads] : kShapes) {
    INFO(d << " columns, " << heads << " heads");
    const std::int64_t width = d / heads;
    const Dense x = random_dense(kRows, d, 1);
    const Dense g = random_dense(kRows, width, 2);
    const RunOptions options = {.attributes = {.heads = heads}};
    CHECK_CLOSE(run_kernel<TestType>("heads_mean", {x}, g, options),
                dense_of(kRows, width,
                         [&, count = heads](auto i, auto c) {
                           double sum = 0;
                           for (std::int64_t h = 0; h < count; ++h) sum += x(i, h * width + c);
                           return sum / static_cast<double>(count);
                         }),
                tolerance<TestType>(heads));
    CHECK_CLOSE(run_kernel<TestType>("heads_spread", {g}, x, options),
                dense_of(kRows, d,
                         [&, count = heads](auto i, auto c) {
                           return g(i, c % width) / static_cast<double>(count);
                         }),
                tolerance<TestType>());
  }
}

TEMPLATE_TEST_CASE("heads: a softmax is normalised, of no edges it is 0", "", float, double) {
  for (const auto& [d, heads] : kShapes) {
    INFO(d << " columns, " << heads << " heads");
    const std::int64_t width = d / heads;
    Dense a = random_dense(kRows, d, 1);
    Dense z = random_dense(kRows, heads, 2);
    for (double& value : z.values) value = std::abs(value) + 1;
    for (std::int64_t head = 0; head < heads; ++head) z(7, head) = 0;
    const Dense y = run_kernel<TestType>("softmax_normalize", {a, z}, a);
    CHECK_CLOSE(
        y,
        dense_of(kRows, d, [&](auto i, auto c) { return i == 7 ? 0 : a(i, c) / z(i, c / width); }),
        tolerance<TestType>());
    for (std::int64_t c = 0; c < d; ++c) CHECK(y(7, c) == 0);
  }
}

}  // namespace ooc::testing
