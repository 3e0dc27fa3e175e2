#include <algorithm>
#include <numeric>

#include "kernels/spec/random.h"
#include "tests/kernels/run_kernel.h"

namespace ooc::testing {
namespace {

Dense mapped(const Dense& a, const std::function<double(std::int64_t, std::int64_t)>& f) {
  Dense result(a.rows, a.cols);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t c = 0; c < a.cols; ++c) result(i, c) = f(i, c);
  }
  return result;
}

Dense ones(std::int64_t rows, std::int64_t cols) {
  return mapped(Dense(rows, cols), [](auto, auto) { return 1.0; });
}

Dense id_column(const std::vector<std::int64_t>& ids) {
  Dense dense(static_cast<std::int64_t>(ids.size()), 1);
  std::copy(ids.begin(), ids.end(), dense.values.begin());
  return dense;
}

std::vector<std::int64_t> consecutive(std::int64_t count) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), std::int64_t{1000});
  return ids;
}

RunOptions dropout_options(double p, std::uint32_t key = 3, StepSeed run = {11, 5}) {
  return {.attributes = {.value = p, .key = key}, .run = run};
}

}  // namespace

TEMPLATE_TEST_CASE("elementwise: add, relu, relu_gradient, scale_rows", "", float, double) {
  for (const std::int64_t d : kWidths) {
    const Dense a = random_dense(kRows, d, 1);
    const Dense b = random_dense(kRows, d, 2);
    const Dense f = random_dense(kRows, 1, 3);
    const Dense out = ones(kRows, d);
    CHECK_CLOSE(run_kernel<TestType>("add", {a, b}, out),
                mapped(a, [&](auto i, auto c) { return a(i, c) + b(i, c); }),
                tolerance<TestType>());
    CHECK_CLOSE(run_kernel<TestType>("scale_rows", {a, f}, out),
                mapped(a, [&](auto i, auto c) { return a(i, c) * f(i, 0); }),
                tolerance<TestType>());
    const Dense y = mapped(b, [&](auto i, auto c) { return std::max(b(i, c), 0.0); });
    CHECK(run_kernel<TestType>("relu", {b}, out).values == y.values);
    CHECK(run_kernel<TestType>("relu_gradient", {a, y}, out).values ==
          mapped(a, [&](auto i, auto c) { return b(i, c) > 0 ? a(i, c) : 0.0; }).values);
  }
}

TEMPLATE_TEST_CASE("elementwise: positive_bits, and keep_bits, which takes them", "", float,
                   double) {
  std::vector<std::int64_t> widths(std::begin(kWidths), std::end(kWidths));
  for (const std::int64_t d : {300, 1100}) widths.push_back(d);  // padded words; two slices of them
  for (const std::int64_t d : widths) {
    INFO(d << " columns");
    Dense x = random_dense(kRows, d, 1);
    x(2, 0) = 0;
    x(3, 0) = -0.0;
    x(4, d - 1) = std::numeric_limits<double>::quiet_NaN();
    const Dense g = random_dense(kRows, d, 2);
    const Dense words = run_kernel<TestType>("positive_bits", {x}, ones(kRows, (d + 31) / 32));
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t c = 0; c < 32 * words.cols; ++c) {
        const auto word = static_cast<std::uint32_t>(static_cast<std::int32_t>(words(i, c / 32)));
        REQUIRE((word >> (c % 32) & 1u) == (c < d && x(i, c) > 0 ? 1u : 0u));
      }
    }
    CHECK(run_kernel<TestType>("keep_bits", {g, words}, ones(kRows, d)).values ==
          mapped(g, [&](auto i, auto c) { return x(i, c) > 0 ? g(i, c) : 0.0; }).values);
  }
}

TEMPLATE_TEST_CASE("elementwise: sub, mul, affine, maximum, scale_cols, scale_by", "", float,
                   double) {
  for (const std::int64_t d : kWidths) {
    const Dense a = random_dense(kRows, d, 1);
    Dense b = random_dense(kRows, d, 2);
    b(3, 0) = a(3, 0);
    const Dense g = random_dense(kRows, d, 3);
    const Dense row = random_dense(1, d, 4);
    const Dense scalar = random_dense(1, 1, 5);
    const Dense out = ones(kRows, d);
    const auto check = [&](const char* op, const std::vector<Dense>& inputs, auto&& f,
                           const RunOptions& options = {}) {
      INFO(op << ", " << d << " columns");
      CHECK_CLOSE(run_kernel<TestType>(op, inputs, out, options), mapped(a, f),
                  tolerance<TestType>());
    };
    check("sub", {a, b}, [&](auto i, auto c) { return a(i, c) - b(i, c); });
    check("mul", {a, b}, [&](auto i, auto c) { return a(i, c) * b(i, c); });
    check("affine", {a}, [&](auto i, auto c) { return 1.5 * a(i, c) - 0.25; },
          {.attributes = {.value = 1.5, .shift = -0.25}});
    check("maximum", {a, b}, [&](auto i, auto c) { return std::max(a(i, c), b(i, c)); });
    check("maximum_gradient", {g, a, b},
          [&](auto i, auto c) { return a(i, c) >= b(i, c) ? g(i, c) : 0.0; });
    check("scale_cols", {a, row}, [&](auto i, auto c) { return a(i, c) * row(0, c); });
    check("scale_by", {a, scalar}, [&](auto i, auto c) { return a(i, c) * scalar(0, 0); });
  }
}

TEMPLATE_TEST_CASE("elementwise: mul_column_sum and dot_sum add to what is there", "", float,
                   double) {
  for (const std::int64_t d : kWidths) {
    const Dense a = random_dense(kRows, d, 1);
    const Dense b = random_dense(kRows, d, 2);
    Dense columns = ones(1, d);
    Dense all = ones(1, 1);
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t c = 0; c < d; ++c) {
        columns(0, c) += a(i, c) * b(i, c);
        all(0, 0) += a(i, c) * b(i, c);
      }
    }
    CHECK_CLOSE(run_kernel<TestType>("mul_column_sum", {a, b}, ones(1, d)), columns,
                tolerance<TestType>(kRows));
    CHECK_CLOSE(run_kernel<TestType>("dot_sum", {a, b}, ones(1, 1)), all,
                tolerance<TestType>(kRows * d));
  }
}

TEMPLATE_TEST_CASE("elementwise: maximum keeps a NaN of either operand", "", float, double) {
  Dense a(1, 33), b(1, 33);
  a(0, 0) = b(0, 1) = a(0, 32) = std::nan("");
  const Dense y = run_kernel<TestType>("maximum", {a, b}, Dense(1, 33));
  for (const std::int64_t c : {0, 1, 32}) CHECK(std::isnan(y(0, c)));
  CHECK(y(0, 2) == 0);
}

TEST_CASE("elementwise: relu passes a NaN on") {
  Dense x(1, 1);
  x(0, 0) = std::nan("");
  CHECK(std::isnan(run_kernel<float>("relu", {x}, x)(0, 0)));
}

TEST_CASE("random: Philox4x32-10 gives the published known answers") {
  struct Known {
    std::uint32_t counter[4];
    std::uint32_t key[2];
    std::uint32_t words[4];
  };
  // Random123's kat_vectors, philox4x32 with 10 rounds.
  const Known known[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                         {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                          {0xffffffff, 0xffffffff},
                          {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                         {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                          {0xa4093822, 0x299f31d0},
                          {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const Known& k : known) {
    std::uint32_t words[4][8];
    for (int w = 0; w < 4; ++w) std::fill_n(words[w], 8, k.counter[w]);
    for (int w = 0; w < 4; ++w) words[w][5] = 0;  // lanes do not mix
    philox4x32<8>(words, (std::uint64_t{k.key[1]} << 32) | k.key[0]);
    for (int w = 0; w < 4; ++w) {
      for (const int lane : {0, 1, 2, 3, 4, 6, 7}) CHECK(words[w][lane] == k.words[w]);
    }
  }
}

TEMPLATE_TEST_CASE("dropout: keeps an element iff its own 16 bits say so", "", float, double) {
  const double p = 0.3;
  const RunOptions options = dropout_options(p);
  const std::uint64_t key = epoch_key(options.run.seed, options.run.epoch);
  for (const std::int64_t d : kWidths) {
    std::vector<std::int64_t> ids = consecutive(kRows);
    ids[1] = (std::int64_t{1} << 40) + 7;
    const Dense x = random_dense(kRows, d, 4);
    const Dense expected = mapped(x, [&](std::int64_t i, std::int64_t c) {
      // One counter alone, without the kernel's grouping.
      const auto id = static_cast<std::uint64_t>(ids[static_cast<std::size_t>(i)]);
      std::uint32_t words[4][1] = {{static_cast<std::uint32_t>(id)},
                                   {static_cast<std::uint32_t>(id >> 32)},
                                   {static_cast<std::uint32_t>(c / 32 * 4 + c % 4)},
                                   {options.attributes.key}};
      philox4x32<1>(words, key);
      const std::uint32_t word = words[c % 16 / 4][0];
      const std::uint32_t bits = c % 32 < 16 ? word >> 16 : word & 0xffff;
      return bits >= std::round(p * 65536) ? x(i, c) * dropout_scale(p) : 0.0;
    });
    const Dense actual =
        run_kernel<TestType>("dropout", {x, id_column(ids)}, ones(kRows, d), options);
    CHECK_CLOSE(actual, expected, tolerance<TestType>());
  }
}

TEST_CASE("dropout: an element's mask does not depend on the rows it is computed with") {
  const std::int64_t rows = 200;
  const std::vector<std::int64_t> ids = consecutive(rows);
  const Dense all = run_kernel<float>("dropout", {ones(rows, 70), id_column(ids)}, ones(rows, 70),
                                      dropout_options(0.5));
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  for (std::size_t first = 0; first < order.size(); first += 23) {
    const std::size_t last = std::min(first + 23, order.size());
    std::vector<std::int64_t> group_ids;
    for (std::size_t i = first; i < last; ++i) {
      group_ids.push_back(ids[static_cast<std::size_t>(order[i])]);
    }
    const Dense group_ones = ones(static_cast<std::int64_t>(group_ids.size()), 70);
    const Dense group = run_kernel<float>("dropout", {group_ones, id_column(group_ids)}, group_ones,
                                          dropout_options(0.5));
    for (std::int64_t i = 0; i < group.rows; ++i) {
      for (std::int64_t c = 0; c < 70; ++c) {
        REQUIRE(group(i, c) == all(order[first + static_cast<std::size_t>(i)], c));
      }
    }
  }
}

TEST_CASE("dropout: keeps the mean exactly, whatever p is rounded to") {
  for (const double p : {0.0, 1e-6, 0.3, 0.5, 0.6, 0.999, 1 - 1e-6}) {
    INFO("p " << p);
    const double kept = 1 - (dropout_threshold(p) >> 16) / 65536.0;  // of all values of 16 bits
    CHECK(kept > 0);
    CHECK(kept * dropout_scale(p) == Approx(1).epsilon(1e-12));
    CHECK(std::abs(kept - (1 - p)) <= 0x1p-16);
  }
}

TEST_CASE("dropout: keeps 1 - p of the elements") {
  const std::int64_t rows = 1000;
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    const Dense out = run_kernel<double>("dropout", {ones(rows, 70), id_column(consecutive(rows))},
                                         ones(rows, 70), dropout_options(p));
    double kept = 0;
    for (const double value : out.values) {
      if (value == 0) continue;
      CHECK(value == Approx(dropout_scale(p)));
      ++kept;
    }
    const auto count = static_cast<double>(out.values.size());
    const double deviation = std::sqrt(p * (1 - p) / count);
    CHECK(std::abs(kept / count - (1 - p)) <= 5 * deviation);
  }
}

TEST_CASE("dropout: seed, epoch and operator each give masks of their own") {
  const std::int64_t rows = 500;
  const auto mask = [&](std::uint32_t key, StepSeed run) {
    return run_kernel<float>("dropout", {ones(rows, 32), id_column(consecutive(rows))},
                             ones(rows, 32), dropout_options(0.5, key, run))
        .values;
  };
  const std::vector<double> base = mask(3, {11, 5});
  CHECK(mask(3, {11, 5}) == base);
  const std::vector<double> others[] = {mask(4, {11, 5}), mask(3, {12, 5}), mask(3, {11, 6}),
                                        mask(3, {5, 11})};
  const auto count = static_cast<double>(base.size());
  for (const auto& other : others) {
    double equal = 0;
    for (std::size_t i = 0; i < base.size(); ++i) equal += base[i] == other[i] ? 1 : 0;
    CHECK(std::abs(equal / count - 0.5) <= 5 * std::sqrt(0.25 / count));
  }
}

TEST_CASE("dropout: columns and neighbouring vertices are independent") {
  const std::int64_t rows = 2000;
  const Dense out = run_kernel<double>("dropout", {ones(rows, 64), id_column(consecutive(rows))},
                                       ones(rows, 64), dropout_options(0.5));
  const double limit = 5 / std::sqrt(static_cast<double>(rows));
  for (std::int64_t c = 1; c < 64; ++c) {
    double by_column = 0;
    double by_row = 0;
    for (std::int64_t i = 1; i < rows; ++i) {
      by_column += (out(i, c) - 1) * (out(i, 0) - 1);
      by_row += (out(i, c) - 1) * (out(i - 1, c) - 1);
    }
    CHECK(std::abs(by_column / static_cast<double>(rows)) < limit);
    CHECK(std::abs(by_row / static_cast<double>(rows)) < limit);
  }
}

}  // namespace ooc::testing
