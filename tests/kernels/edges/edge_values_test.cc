#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/spec/edge_coordinates.h"
#include "tests/kernels/run_kernel.h"

namespace ooc::testing {
namespace {

// Keys of edges: sources and destinations up to the largest id, some edges parallel.
Dense random_keys(std::int64_t rows, unsigned seed) {
  std::mt19937_64 random(seed);
  Dense keys(rows, 3);
  for (std::int64_t i = 0; i < rows; ++i) {
    keys(i, 0) = static_cast<double>(random() & 0xffffffffu);
    keys(i, 1) = static_cast<double>(random() & 0xffffffffu);
    keys(i, 2) = static_cast<double>(random() % 3);
  }
  return keys;
}

Dense filled(std::int64_t rows, std::int64_t cols, double value) {
  Dense dense(rows, cols);
  std::fill(dense.values.begin(), dense.values.end(), value);
  return dense;
}

RunOptions dropout_of(double p, std::int64_t heads, StepSeed run = {11, 5}, std::uint32_t key = 3) {
  return {.attributes = {.value = p, .key = key, .heads = heads}, .run = run};
}

Dense masks(const Dense& keys, const RunOptions& options, std::int64_t width = 1) {
  const std::int64_t cols = options.attributes.heads * width;
  return run_kernel<float>("edge_dropout", {filled(keys.rows, cols, 1), keys},
                           Dense(keys.rows, cols), options);
}

}  // namespace

TEMPLATE_TEST_CASE("edge values: the weights of a softmax", "", float, double) {
  for (const std::int64_t h : {1, 4, 8, 33}) {
    Dense s = random_dense(kRows, h, 1);
    Dense m = random_dense(kRows, h, 2);
    Dense z = random_dense(kRows, h, 3);
    Dense expected(kRows, h);
    for (std::size_t i = 0; i < s.values.size(); ++i) {
      s.values[i] *= 20;
      m.values[i] = s.values[i] + std::abs(m.values[i]);
      z.values[i] = 1 + std::abs(z.values[i]);
    }
    for (std::int64_t i = 0; i < kRows; ++i) {
      // As the kernel's type holds them.
      for (std::int64_t c = 0; c < h; ++c) {
        const auto score = static_cast<TestType>(s(i, c)), most = static_cast<TestType>(m(i, c));
        expected(i, c) = std::exp(static_cast<double>(score - most)) / z(i, c);
      }
    }
    CHECK_CLOSE(run_kernel<TestType>("softmax_weight", {s, m, z}, s), expected,
                tolerance<TestType>());
  }
}

TEMPLATE_TEST_CASE("edge values: a head is kept iff its own Philox word says so", "", float,
                   double) {
  const double p = 0.3;
  for (const auto& [d, heads] : {std::pair{1, 1}, {8, 8}, {40, 5}, {96, 4}, {70, 7}}) {
    INFO(d << " columns, " << heads << " heads");
    const RunOptions options = dropout_of(p, heads);
    const Dense keys = random_keys(kRows, 1);
    const Dense x = random_dense(kRows, d, 2);
    Dense expected(kRows, d);
    const std::uint64_t key = edge_mask_key(options.run.seed, options.run.epoch, 3);
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t c = 0; c < d; ++c) {
        const auto head = static_cast<std::uint32_t>(c / (d / heads));
        std::uint32_t words[4][1] = {{static_cast<std::uint32_t>(keys(i, 0))},
                                     {static_cast<std::uint32_t>(keys(i, 1))},
                                     {static_cast<std::uint32_t>(keys(i, 2))},
                                     {head / 4}};
        philox4x32<1>(words, key);
        const double threshold = std::round(p * 65536) * 65536;
        expected(i, c) = words[head % 4][0] >= threshold ? x(i, c) * dropout_scale(p) : 0.0;
      }
    }
    CHECK_CLOSE(run_kernel<TestType>("edge_dropout", {x, keys}, x, options), expected,
                tolerance<TestType>());
  }
}

TEST_CASE("edge values: an edge's mask does not depend on the batch it is in") {
  const std::int64_t edges = 300;
  const Dense keys = random_keys(edges, 3);
  const RunOptions options = dropout_of(0.5, 6);
  const Dense all = masks(keys, options);
  std::vector<std::int64_t> order(static_cast<std::size_t>(edges));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  for (std::size_t first = 0; first < order.size(); first += 37) {
    const std::size_t count = std::min<std::size_t>(37, order.size() - first);
    Dense some(static_cast<std::int64_t>(count), 3);
    for (std::size_t i = 0; i < count; ++i) {
      for (int k = 0; k < 3; ++k) some(static_cast<std::int64_t>(i), k) = keys(order[first + i], k);
    }
    const Dense batch = masks(some, options);
    for (std::size_t i = 0; i < count; ++i) {
      for (int head = 0; head < 6; ++head) {
        CHECK(batch(static_cast<std::int64_t>(i), head) == all(order[first + i], head));
      }
    }
  }
}

TEST_CASE("edge values: everything that a mask depends on changes it, and the rate is p") {
  const Dense keys = random_keys(2000, 4);
  const Dense base = masks(keys, dropout_of(0.3, 8));
  double kept = 0;
  for (const double value : base.values) kept += value > 0 ? 1 : 0;
  CHECK(kept / static_cast<double>(base.values.size()) == Approx(0.7).margin(0.015));
  CHECK(masks(keys, dropout_of(0.3, 8)).values == base.values);
  CHECK(masks(keys, dropout_of(0.3, 8, {12, 5})).values != base.values);
  CHECK(masks(keys, dropout_of(0.3, 8, {11, 6})).values != base.values);
  CHECK(masks(keys, dropout_of(0.3, 8, {11, 5}, 4)).values != base.values);
  for (int k = 0; k < 3; ++k) {
    Dense moved = keys;
    for (std::int64_t i = 0; i < moved.rows; ++i) moved(i, k) += 1;
    const Dense other = masks(moved, dropout_of(0.3, 8));
    double equal = 0;
    for (std::size_t i = 0; i < other.values.size(); ++i) {
      equal += (other.values[i] > 0) == (base.values[i] > 0) ? 1 : 0;
    }
    // Independent masks agree where both keep or both drop.
    CHECK(equal / static_cast<double>(other.values.size()) == Approx(0.58).margin(0.02));
  }
}

TEST_CASE("edge values: heads of one edge are dropped on their own") {
  const Dense mask = masks(random_keys(4000, 5), dropout_of(0.5, 8));
  for (int a = 0; a < 8; ++a) {
    for (int b = a + 1; b < 8; ++b) {
      double equal = 0;
      for (std::int64_t i = 0; i < mask.rows; ++i) equal += mask(i, a) == mask(i, b) ? 1 : 0;
      CHECK(equal / 4000 == Approx(0.5).margin(0.05));
    }
  }
}

TEMPLATE_TEST_CASE("edge values: only the winner gets the gradient", "", float, double) {
  const Dense keys = random_keys(kRows, 6);
  Dense sources(kRows, 1), indexes(kRows, 1), edges(kRows, 1);
  for (std::int64_t i = 0; i < kRows; ++i) {
    // Small enough for a winner_key to be exact in a double.
    sources(i, 0) = std::fmod(keys(i, 0), 1 << 20);
    indexes(i, 0) = keys(i, 2);
    edges(i, 0) = static_cast<double>(winner_key(static_cast<std::int64_t>(sources(i, 0)),
                                                 static_cast<std::int64_t>(indexes(i, 0))));
  }
  CHECK(run_kernel<TestType>("winner_key", {sources, indexes}, Dense(kRows, 1)).values ==
        edges.values);
  for (const std::int64_t d : kWidths) {
    const Dense g = random_dense(kRows, d, 7);
    Dense winners(kRows, d);
    Dense expected(kRows, d);
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t c = 0; c < d; ++c) {
        const bool wins = (i + c) % 3 == 0;
        winners(i, c) = wins ? edges(i, 0) : (i + c) % 3 == 1 ? 0 : edges(i, 0) + 8;
        expected(i, c) = wins ? g(i, c) : 0;
      }
    }
    CHECK(run_kernel<TestType>("select_winner", {g, winners, edges}, g).values == expected.values);
  }
}

TEST_CASE("edge values: winner_key orders by source, then by index, and is above 0") {
  CHECK(winner_key(0, 0) == 1);
  CHECK(winner_key(0, 1) > winner_key(0, 0));
  CHECK(winner_key(1, 0) > winner_key(0, std::int64_t{1} << 40));
  CHECK(winner_key(0, 1 << 24) == winner_key(0, (1 << 24) - 1));
  CHECK(winner_key((std::int64_t{1} << 32) - 1, 0) > 0);
}

}  // namespace ooc::testing
