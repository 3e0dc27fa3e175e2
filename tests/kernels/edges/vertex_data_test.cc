#include <cmath>

#include "storage/format/manifest.h"
#include "tests/kernels/run_kernel.h"

namespace ooc::testing {
namespace {

// In-degree, out-degree, self loops: none of anything, more than one loop, odd counts.
constexpr int kDegrees[][3] = {{0, 0, 0}, {3, 8, 0}, {0, 2, 1}, {5, 0, 3}, {1 << 20, 7, 1}};

Dense degree_rows() {
  Dense rows(std::size(kDegrees), 3);
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    for (std::int64_t c = 0; c < 3; ++c) rows(i, c) = kDegrees[i][c];
  }
  return rows;
}

Dense poisoned(std::int64_t rows) {
  Dense dense(rows, 1);
  for (double& value : dense.values) value = 77;
  return dense;
}

}  // namespace

TEMPLATE_TEST_CASE("vertex data: factors of degrees, computed in double", "", float, double) {
  const Dense degrees = degree_rows();
  struct Case {
    DegreeFactor factor;
    double (*value)(double in, double out, double loops);
  };
  const Case cases[] = {
      {DegreeFactor::kIn,
       [](double in, double, double loops) { return 1 / std::sqrt(in + std::max(loops, 1.0)); }},
      {DegreeFactor::kOut,
       [](double, double out, double loops) { return 1 / std::sqrt(out + std::max(loops, 1.0)); }},
      {DegreeFactor::kInverseIn,
       [](double in, double, double loops) { return in + loops > 0 ? 1 / (in + loops) : 0; }},
      {DegreeFactor::kLoop, [](double, double, double loops) { return 1 - loops; }},
      {DegreeFactor::kInverseInWithLoops,
       [](double in, double, double loops) { return 1 / (in + std::max(loops, 1.0)); }}};
  for (const Case& c : cases) {
    INFO("factor " << static_cast<int>(c.factor));
    const Dense found =
        run_kernel<TestType>("degree_factor", {degrees}, poisoned(degrees.rows),
                             {.attributes = {.value = static_cast<double>(c.factor)}});
    for (std::int64_t i = 0; i < degrees.rows; ++i) {
      INFO("row " << i);
      const double expected = c.value(degrees(i, 0), degrees(i, 1), degrees(i, 2));
      CHECK(found(i, 0) == static_cast<double>(static_cast<TestType>(expected)));
    }
  }
}

TEMPLATE_TEST_CASE("vertex data: a binary label is a bit, or none", "", float, double) {
  const int labels[] = {1, 0, -1, 1, -7};
  const double bits[] = {1, 0, kUnlabelled, 1, kUnlabelled};
  Dense rows(std::size(labels), 1);
  for (std::int64_t i = 0; i < rows.rows; ++i) rows(i, 0) = labels[i];
  const Dense found = run_kernel<TestType>("binary_label", {rows}, poisoned(rows.rows));
  for (std::int64_t i = 0; i < rows.rows; ++i) CHECK(found(i, 0) == bits[i]);
}

TEMPLATE_TEST_CASE("vertex data: inverses of sums are 0 where there are none, zeros are counted",
                   "", float, double) {
  const double sums[] = {4, 0, -2, 0.25, -0.0, 3};
  const double inverses[] = {0.25, 0, -0.5, 4, 0, 1.0 / 3};
  const double roots[] = {0.5, 0, 0, 2, 0, 1 / std::sqrt(3.0)};
  Dense x(std::size(sums), 1);
  for (std::int64_t i = 0; i < x.rows; ++i) x(i, 0) = sums[i];
  const Dense inverse = run_kernel<TestType>("inverse", {x}, poisoned(x.rows));
  const Dense root = run_kernel<TestType>("inverse_sqrt", {x}, poisoned(x.rows));
  for (std::int64_t i = 0; i < x.rows; ++i) {
    INFO("row " << i);
    CHECK(inverse(i, 0) == static_cast<double>(static_cast<TestType>(inverses[i])));
    CHECK(root(i, 0) == static_cast<double>(static_cast<TestType>(roots[i])));
  }
  Dense before(1, 1);
  before(0, 0) = 5;  // what other rows added
  CHECK(run_kernel<TestType>("count_zeros", {root}, before)(0, 0) == 8);
}

}  // namespace ooc::testing
