// How rows of edges become a row of their vertex: max and softmax (kernels/spec/edge_program.h).
#include "tests/kernels/edges/edge_harness.h"

namespace ooc::testing {
namespace {

constexpr TileEncoding kEncodings[] = {TileEncoding::kRuns, TileEncoding::kPairs};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

EdgeCase edge_case(int edges = 800) { return {random_graph(300, 50, edges, 5), 1}; }

// Original ids that fall as rows rise: ties must not go to the first edge.
std::int64_t id_of(std::int64_t source) { return (std::int64_t{1} << 27) - source * 7; }

// Loaded values through a step: x at the sources, as they are.
template <class T>
int rows_of(EdgeTrial<T>& work, const Dense& x) {
  return work.step("copy", {work.value(work.streamed(x))}, x.cols);
}

struct Largest {
  Dense value, winner;
};

// By the definition: the largest; of equal ones the smallest key.
Largest largest_of(const EdgeCase& on, const Dense& x) {
  Largest result{Dense(on.graph.rows, x.cols), Dense(on.graph.rows, x.cols)};
  for_each_edge_of(on, [&](const EdgeSeen& e) {
    const auto key = static_cast<double>(winner_key(id_of(e.source), e.index));
    for (std::int64_t c = 0; c < x.cols; ++c) {
      double& best = result.value(e.row, c);
      double& winner = result.winner(e.row, c);
      const double value = x(e.source, c);
      if (winner == 0 || value > best || (value == best && key < winner)) {
        best = value;
        winner = key;
      }
    }
  });
  return result;
}

// A row's softmax over its edges, head by head, in two passes.
struct Softmax {
  Dense weighted, max, sum;
};

using Score = std::function<double(const EdgeSeen&, std::int64_t head)>;

Softmax softmax_of(const EdgeCase& on, std::int64_t heads, const Dense& x, const Score& score) {
  Softmax result{Dense(on.graph.rows, x.cols), Dense(on.graph.rows, heads),
                 Dense(on.graph.rows, heads)};
  std::vector<bool> seen(static_cast<std::size_t>(on.graph.rows));
  for_each_edge_of(on, [&](const EdgeSeen& e) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const double s = score(e, h);
      double& max = result.max(e.row, h);
      if (!seen[static_cast<std::size_t>(e.row)] || s > max) max = s;
    }
    seen[static_cast<std::size_t>(e.row)] = true;
  });
  for_each_edge_of(on, [&](const EdgeSeen& e) {
    for (std::int64_t h = 0; h < heads; ++h) {
      result.sum(e.row, h) += std::exp(score(e, h) - result.max(e.row, h));
    }
    for (std::int64_t c = 0; c < x.cols; ++c) {
      const std::int64_t h = c / (x.cols / heads);
      result.weighted(e.row, c) += std::exp(score(e, h) - result.max(e.row, h)) * x(e.source, c);
    }
  });
  return result;
}

void check_softmax(const EdgeResult& result, const Softmax& expected, double limit) {
  CHECK_CLOSE(result.accumulators[0], expected.weighted, limit);
  check_equal(result.accumulators[1], expected.max);
  CHECK_CLOSE(result.accumulators[2], expected.sum, limit);
}

// Scores that both ends make, of floats: their sums are those of the kernel.
template <class T>
struct ScoredWork {
  Dense scores, offsets, x;
  EdgeTrial<T> work;

  ScoredWork(const EdgeCase& on, std::int64_t heads, std::int64_t width, double scale)
      : scores(random_dense(on.sources(), heads, 1)),
        offsets(random_dense(on.graph.rows, heads, 2)),
        x(random_dense(on.sources(), heads * width, 3)),
        work(on) {
    for (double& s : scores.values) s = std::round(s * 64) * scale;
    for (double& s : offsets.values) s = std::round(s * 64) * scale;
    const int score = work.step(
        "add", {work.value(work.streamed(scores)), work.value(work.resident(offsets))}, heads);
    work.softmax(score, work.streamed(x));
  }
  Softmax expected(const EdgeCase& on) const {
    return softmax_of(on, scores.cols, x, [&](const EdgeSeen& e, std::int64_t h) {
      return scores(e.source, h) + offsets(e.row, h);
    });
  }
};

}  // namespace

TEMPLATE_TEST_CASE("edge folds: a maximum's ties go to the smallest key, in every cut", "", float,
                   double) {
  const EdgeCase on = edge_case();
  for (const std::int64_t cols : {1, 9, 40, 70}) {
    for (const bool negative : {false, true}) {
      Dense x = random_dense(on.sources(), cols, 1);
      for (double& value : x.values) value = std::round(value * 2) - (negative ? 3 : 0);
      EdgeTrial<TestType> work(on);
      work.max(rows_of(work, x), work.winner_key(id_of));
      const Largest expected = largest_of(on, x);
      for (const TileEncoding encoding : kEncodings) {
        for (const std::int64_t batch : {1, 32, 512}) {
          for (const std::int64_t sliced : {std::int64_t{0}, cols}) {
            INFO(cols << " columns, negative " << negative << ", batches of " << batch);
            const EdgeResult result = work.run({batch, 2, encoding, sliced});
            check_equal(result.accumulators[0], expected.value);
            check_equal(result.accumulators[1], expected.winner);
          }
        }
      }
    }
  }
}

TEST_CASE("edge folds: a maximum tells parallel edges apart") {
  EdgeCase on = edge_case();
  for (auto& span : on.weights) {
    for (float& weight : span) weight = std::round(weight * 4);
  }
  EdgeTrial<float> work(on);
  work.max(work.carried(EdgeLoad::kWeights, 1), work.winner_key(id_of));
  Dense largest(on.graph.rows, 1), winner(on.graph.rows, 1);
  for_each_edge_of(on, [&](const EdgeSeen& e) {
    const auto key = static_cast<double>(winner_key(id_of(e.source), e.index));
    const bool tie = e.weight == largest(e.row, 0) && key < winner(e.row, 0);
    if (winner(e.row, 0) > 0 && e.weight <= largest(e.row, 0) && !tie) return;
    largest(e.row, 0) = e.weight;
    winner(e.row, 0) = key;
  });
  for (const std::int64_t batch : {1, 32}) {
    const EdgeResult result = work.run({batch, 2, TileEncoding::kPairs});
    check_equal(result.accumulators[0], largest);
    check_equal(result.accumulators[1], winner);
  }
}

TEMPLATE_TEST_CASE("edge folds: a NaN wins a maximum wherever it comes, infinities count", "",
                   float, double) {
  const EdgeCase on(Graph{6,
                          5,
                          {{{0, 0},
                            {0, 1},
                            {0, 2},
                            {0, 4},
                            {1, 1},
                            {1, 2},
                            {1, 3},
                            {2, 0},
                            {2, 2},
                            {2, 3},
                            {3, 2},
                            {4, 3},
                            {4, 3},
                            {4, 3}}}},
                    1);
  Dense x(5, 33);  // rows: a number, NaN, -inf, a larger number, NaN
  for (std::int64_t c = 0; c < 33; ++c) {
    x(0, c) = -5;
    x(1, c) = kNaN;
    x(2, c) = -kInfinity;
    x(3, c) = -4;
    x(4, c) = kNaN;
  }
  EdgeTrial<TestType> work(on);
  work.max(rows_of(work, x), work.winner_key(id_of));
  const double values[] = {kNaN, kNaN, -4, -kInfinity, -4, 0};
  const std::int64_t sources[] = {4, 1, 3, 2, 3};
  for (const std::int64_t batch : {1, 2, 32}) {
    const EdgeResult result = work.run({batch, 1, TileEncoding::kPairs});
    for (std::int64_t row = 0; row < 6; ++row) {
      for (std::int64_t c = 0; c < 33; ++c) {
        INFO("row " << row << ", column " << c);
        const double got = result.accumulators[0](row, c);
        CHECK((std::isnan(values[row]) ? std::isnan(got) : got == values[row]));
        const std::int64_t winner = row == 5 ? 0 : winner_key(id_of(sources[row]), 0);
        CHECK(result.accumulators[1](row, c) == static_cast<double>(winner));
      }
    }
  }
}

TEMPLATE_TEST_CASE("edge folds: softmax of any heads is that of two passes", "", float, double) {
  const EdgeCase on = edge_case();
  for (const auto& [heads, width] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                     {1, 70},
                                     {2, 33},
                                     {3, 20},
                                     {4, 8},
                                     {5, 13},
                                     {7, 1},
                                     {8, 8},
                                     {9, 7},
                                     {16, 2},
                                     {31, 3},
                                     {32, 1},
                                     {32, 3}}) {
    const ScoredWork<TestType> scored(on, heads, width, 1.0 / 16);
    const Softmax expected = scored.expected(on);
    INFO(heads << " heads of " << width);
    const EdgeResult whole = scored.work.run({512, 99, TileEncoding::kRuns});
    check_softmax(whole, expected, tolerance<TestType>(1000));
    for (const TileEncoding encoding : kEncodings) {
      for (const std::int64_t batch : {8, 32}) {
        for (const std::size_t group : {1, 2}) {
          check_same_bits(scored.work.run({batch, group, encoding}), whole);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("edge folds: softmax of large scores stays finite", "", float, double) {
  const EdgeCase on = edge_case();
  for (const double scale : {1e3, 1e6, 1e30}) {
    const ScoredWork<TestType> scored(on, 3, 20, scale);
    INFO("scores of " << 64 * scale);
    const EdgeResult result = scored.work.run();
    for (const Dense& dense : result.accumulators) {
      for (const double value : dense.values) REQUIRE(std::isfinite(value));
    }
    if (scale < 1e30) check_softmax(result, scored.expected(on), tolerance<TestType>(1000));
  }
}

TEMPLATE_TEST_CASE("edge folds: an edge of score -inf has no share, first or last", "", float,
                   double) {
  const std::vector<LocalEdge> first = {{0, 0}, {0, 1}, {1, 2}, {1, 3}, {2, 0}, {2, 1}, {2, 3},
                                        {3, 1}, {3, 2}, {3, 3}, {4, 0}, {4, 3}, {5, 0}, {5, 3}};
  const std::vector<LocalEdge> second = {{0, 0}, {1, 0}, {4, 1}, {4, 3}, {5, 3}};
  const EdgeCase on(Graph{6, 4, {first, second}}, 1);
  Dense scores = random_dense(8, 3, 1);
  const Dense x = random_dense(8, 36, 2);
  for (std::int64_t h = 0; h < 3; ++h) {
    for (const std::int64_t source : {0, 3, 7}) scores(source, h) = -kInfinity;
  }
  scores(4, 1) = -kInfinity;
  EdgeTrial<TestType> work(on);
  work.softmax(work.step("copy", {work.value(work.streamed(scores))}, 3), work.streamed(x));
  Softmax expected =
      softmax_of(on, 3, x, [&](const EdgeSeen& e, std::int64_t h) { return scores(e.source, h); });
  for (std::int64_t c = 0; c < 36; ++c) expected.weighted(5, c) = 0;  // no edge has a share
  for (std::int64_t h = 0; h < 3; ++h) expected.sum(5, h) = 0;
  for (const std::int64_t batch : {1, 2, 32}) {
    INFO("batches of " << batch);
    check_softmax(work.run({batch, 1, TileEncoding::kRuns}), expected, tolerance<TestType>(8));
  }
}

TEMPLATE_TEST_CASE("edge folds: folds that share a program give what each gives alone", "", float,
                   double) {
  const EdgeCase on = edge_case();
  const Dense x = random_dense(on.sources(), 40, 1), scores = random_dense(on.sources(), 5, 2);
  EdgeTrial<TestType> all(on), sum(on), max(on), softmax(on);
  const auto folds = [&](EdgeTrial<TestType>& work, bool sums, bool maxes, bool softmaxes) {
    const int rows = rows_of(work, x), score = rows_of(work, scores), keys = work.winner_key(id_of);
    if (sums) work.sum(rows);
    if (maxes) work.max(rows, keys);
    if (softmaxes) work.softmax(score, rows);
  };
  folds(all, true, true, true);
  folds(sum, true, false, false);
  folds(max, false, true, false);
  folds(softmax, false, false, true);
  std::vector<Dense> apart;
  for (const EdgeTrial<TestType>* work : {&sum, &max, &softmax}) {
    for (const Dense& dense : work->run({32, 1}).accumulators) apart.push_back(dense);
  }
  check_same_bits(all.run({8, 2}).accumulators, apart);
}

}  // namespace ooc::testing
