// Edge programs: what is loaded, computed and summed for every edge (kernels/spec/edge_program.h).
#include "tests/kernels/edges/edge_harness.h"

namespace ooc::testing {
namespace {

constexpr TileEncoding kEncodings[] = {TileEncoding::kRuns, TileEncoding::kPairs};
constexpr std::int64_t kEdgeWidths[] = {1, 3, 8, 9, 33, 70};

// Skewed, with a run of 20 parallel edges in the first and the last tile.
EdgeCase edge_case(std::int64_t feature_cols = 5, int edges = 500) {
  Graph graph = random_graph(400, 60, edges, 9);
  for (const std::size_t span : {std::size_t{0}, graph.spans.size() - 1}) {
    auto& list = graph.spans[span];
    const LocalEdge copied = list[list.size() / 2];
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2), 20, copied);
  }
  return {std::move(graph), feature_cols};
}

// int32 or int64, one column, as real values.
template <class T, class From>
void to_real(const OperatorCall& call) {
  const MatrixView& from = call.inputs[0];
  const MatrixView& to = call.outputs[0];
  for (std::int64_t i = 0; i < from.rows; ++i) {
    to.data<T>(0)[i * to.stride(0)] = static_cast<T>(from.data<From>(0)[i * from.stride(0)]);
  }
}

// The sum over each row's edges of what `value` adds, in double.
Dense sum_of(const EdgeCase& on, std::int64_t cols,
             const std::function<double(const EdgeSeen&, std::int64_t)>& value) {
  Dense sum(on.graph.rows, cols);
  for_each_edge_of(on, [&](const EdgeSeen& edge) {
    for (std::int64_t c = 0; c < cols; ++c) sum(edge.row, c) += value(edge, c);
  });
  return sum;
}

// The tests' longest row has fewer edges.
constexpr std::int64_t kTerms = 1000;

// Every kind of load and of matrix in one program, all of it element by element.
template <class T>
struct MixedWork {
  Dense x, y, factor, bias;
  EdgeTrial<T> work;

  // `cols` features an edge.
  MixedWork(const EdgeCase& on, std::int64_t cols)
      : x(random_dense(on.sources(), cols, 3)),
        y(random_dense(on.graph.rows, cols, 4)),
        factor(random_dense(1, cols, 5)),
        bias(random_dense(1, cols, 6)),
        work(on) {
    using Work = EdgeTrial<T>;
    const auto v = Work::value;
    const int product = work.step("mul", {v(work.streamed(x)), v(work.resident(y))}, cols);
    const int features = work.carried(EdgeLoad::kFeatures, cols);
    const int scaled = work.step("scale_cols", {v(features), work.matrix(factor)}, cols);
    const int sum = work.step("add", {v(product), v(scaled)}, cols);
    const int shifted = work.step("bias", {v(sum), work.matrix(bias)}, cols);
    const int weights = work.carried(EdgeLoad::kWeights, 1);
    const int weighted = work.step("scale_rows", {v(shifted), v(weights)}, cols);
    work.reduce("column_sum", {v(weighted)}, work.matrix(random_dense(1, cols, 7)));
    work.reduce("mul_column_sum", {v(weighted), v(features)}, work.matrix(Dense(1, cols)));
    work.sum(weighted, random_dense(on.graph.rows, cols, 8));
    work.sum(features);
    work.max(weighted, work.winner_key([](std::int64_t source) { return 1000 - source; }));
  }
  double weighted(const EdgeSeen& edge, std::int64_t c) const {
    return edge.weight *
           (x(edge.source, c) * y(edge.row, c) + factor(0, c) * edge.features[c] + bias(0, c));
  }
};

}  // namespace

TEMPLATE_TEST_CASE("edge kernel: every kind of load reaches its edge", "", float, double) {
  using Work = EdgeTrial<TestType>;
  const auto v = Work::value;
  for (const std::int64_t cols : kEdgeWidths) {
    const EdgeCase on = edge_case(cols);
    const Dense x = random_dense(on.sources(), 3 * cols, 1);
    const Dense y = random_dense(on.graph.rows, cols, 2);
    Work work(on);
    const int by_type = work.streamed(x);
    const int of_row = work.resident(y);
    const int types = work.carried(EdgeLoad::kTypes, 1, DType::kI32);
    const int index = work.carried(EdgeLoad::kParallelIndex, 1, DType::kI64);
    Attributes picked;
    picked.cols = cols;
    work.sum(work.step("pick_type", {v(by_type), v(types)}, cols, picked));
    work.sum(of_row);
    work.sum(work.carried(EdgeLoad::kWeights, 1));
    work.sum(work.carried(EdgeLoad::kWeights, 1, DType::kF64));
    work.sum(work.carried(EdgeLoad::kFeatures, cols));
    work.sum(work.step(to_real<TestType, std::int64_t>, {v(index)}, 1));
    work.sum(work.step(to_real<TestType, std::int32_t>, {v(types)}, 1));
    const std::vector<Dense> expected = {
        sum_of(on, cols, [&](auto& e, auto c) { return x(e.source, e.type * cols + c); }),
        sum_of(on, cols, [&](auto& e, auto c) { return y(e.row, c); }),
        sum_of(on, 1, [&](auto& e, auto) { return e.weight; }),
        sum_of(on, 1, [&](auto& e, auto) { return e.weight; }),
        sum_of(on, cols, [&](auto& e, auto c) { return e.features[c]; }),
        sum_of(on, 1, [&](auto& e, auto) { return static_cast<double>(e.index); }),
        sum_of(on, 1, [&](auto& e, auto) { return static_cast<double>(e.type); })};
    for (const TileEncoding encoding : kEncodings) {
      for (const std::int64_t batch : {1, 7, 32, 512}) {
        INFO(cols << " columns, batches of " << batch);
        const EdgeResult result = work.run({batch, 99, encoding});
        for (std::size_t i = 0; i < expected.size(); ++i) {
          INFO("sum " << i);
          CHECK_CLOSE(result.accumulators[i], expected[i], tolerance<TestType>(kTerms));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("edge kernel: matrices are read by steps and summed by reductions", "", float,
                   double) {
  using Work = EdgeTrial<TestType>;
  const auto v = Work::value;
  for (const auto& [k, m] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {9, 35}, {40, 70}}) {
    const EdgeCase on = edge_case();
    const Dense x = random_dense(on.sources(), k, 1), y = random_dense(on.graph.rows, k, 2);
    const Dense w = random_dense(k, m, 3), g = random_dense(on.graph.rows, m, 4);
    const Dense started = random_dense(k, m, 5);
    Work work(on);
    const int sum = work.step("add", {v(work.streamed(x)), v(work.resident(y))}, k);
    const int product = work.step("matmul", {v(sum), work.matrix(w)}, m);
    const int gradient = work.resident(g);
    work.reduce("matmul_reduce", {v(sum), v(gradient)}, work.matrix(started));
    work.reduce("column_sum", {v(product)}, work.matrix(Dense(1, m)));
    work.reduce("dot_sum", {v(product), v(gradient)}, work.matrix(Dense(1, 1)));
    work.sum(product);

    Dense products(on.graph.rows, m), weights = started, column(1, m), dot(1, 1);
    std::int64_t edges = 0;
    for_each_edge_of(on, [&](const EdgeSeen& e) {
      ++edges;
      for (std::int64_t c = 0; c < m; ++c) {
        double value = 0;
        for (std::int64_t i = 0; i < k; ++i) {
          const double in = x(e.source, i) + y(e.row, i);
          value += in * w(i, c);
          weights(i, c) += in * g(e.row, c);
        }
        products(e.row, c) += value;
        column(0, c) += value;
        dot(0, 0) += value * g(e.row, c);
      }
    });
    for (const TileEncoding encoding : kEncodings) {
      for (const std::int64_t batch : {8, 512}) {
        INFO(k << " by " << m << ", batches of " << batch);
        const EdgeResult result = work.run({batch, 99, encoding});
        const double limit = tolerance<TestType>(edges);
        CHECK_CLOSE(result.accumulators[0], products, limit);
        CHECK_CLOSE(result.matrices[0], w, 0);
        CHECK_CLOSE(result.matrices[1], weights, limit);
        CHECK_CLOSE(result.matrices[2], column, limit);
        CHECK_CLOSE(result.matrices[3], dot, limit);
      }
    }
  }
}

TEMPLATE_TEST_CASE("edge kernel: several folds and reductions of one program", "", float, double) {
  for (const std::int64_t cols : kEdgeWidths) {
    const EdgeCase on = edge_case(cols);
    const MixedWork<TestType> mixed(on, cols);
    Dense sum = random_dense(on.graph.rows, cols, 8), column = random_dense(1, cols, 7);
    Dense product(1, cols), largest(on.graph.rows, cols);
    std::vector<bool> seen(static_cast<std::size_t>(on.graph.rows));
    std::int64_t edges = 0;
    for_each_edge_of(on, [&](const EdgeSeen& e) {
      ++edges;
      const bool first = !seen[static_cast<std::size_t>(e.row)];
      seen[static_cast<std::size_t>(e.row)] = true;
      for (std::int64_t c = 0; c < cols; ++c) {
        const double value = mixed.weighted(e, c);
        sum(e.row, c) += value;
        column(0, c) += value;
        product(0, c) += value * e.features[c];
        largest(e.row, c) = first ? value : std::max(largest(e.row, c), value);
      }
    });
    const Dense features = sum_of(on, cols, [](auto& e, auto c) { return e.features[c]; });
    const EdgeResult result = mixed.work.run();
    const double limit = tolerance<TestType>(edges);
    CHECK_CLOSE(result.accumulators[0], sum, limit);
    CHECK_CLOSE(result.accumulators[1], features, limit);
    CHECK_CLOSE(result.accumulators[2], largest, limit);
    CHECK_CLOSE(result.matrices[2], column, limit);
    CHECK_CLOSE(result.matrices[3], product, limit);
  }
}

TEMPLATE_TEST_CASE("edge kernel: the bits do not depend on batches, calls, encoding or slices", "",
                   float, double) {
  for (const std::int64_t cols : {9, 33, 70}) {
    const EdgeCase on = edge_case(cols, 1500);
    const MixedWork<TestType> mixed(on, cols);
    const EdgeResult expected = mixed.work.run({512, 99, TileEncoding::kRuns});
    for (const TileEncoding encoding : kEncodings) {
      for (const std::int64_t batch : {1, 8, 32, 512}) {
        for (const std::size_t group : {1, 2, 3}) {
          for (const std::int64_t sliced : {std::int64_t{0}, cols}) {
            INFO(cols << " columns, batches of " << batch << ", " << group
                      << " entries a call, slice-local " << sliced);
            check_same_bits(mixed.work.run({batch, group, encoding, sliced}), expected);
          }
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("edge kernel: a slice sees its own columns of what edges carry", "", float,
                   double) {
  using Work = EdgeTrial<TestType>;
  const EdgeCase on = edge_case(70);
  const Dense x = random_dense(on.sources(), 70, 1);
  Work work(on);
  const int features = work.carried(EdgeLoad::kFeatures, 70);
  work.sum(work.step("mul", {Work::value(work.streamed(x)), Work::value(features)}, 70));
  const Dense expected =
      sum_of(on, 70, [&](auto& e, auto c) { return x(e.source, c) * e.features[c]; });
  for (const std::int64_t sliced : {0, 70}) {
    const EdgeResult result = work.run({32, 2, TileEncoding::kPairs, sliced});
    CHECK_CLOSE(result.accumulators[0], expected, tolerance<TestType>(kTerms));
  }
}

TEMPLATE_TEST_CASE("edge kernel: sums of neighbours alone need no scratch and give the same", "",
                   float, double) {
  using Work = EdgeTrial<TestType>;
  for (const std::int64_t cols : kEdgeWidths) {
    const EdgeCase on = edge_case(1, 1500);
    const Dense x = random_dense(on.sources(), cols, 1), y = random_dense(on.sources(), 3, 2);
    const auto sums = [&](Work& work, bool narrow) {
      const int rows = work.streamed(x);
      work.sum(rows, random_dense(on.graph.rows, cols, 3));
      if (narrow) work.sum(work.streamed(y));
      return rows;
    };
    for (const bool narrow : {false, true}) {
      Work plain(on), stepped(on);
      sums(plain, narrow);
      stepped.step("relu", {Work::value(sums(stepped, narrow))}, cols);  // so it runs in batches
      const EdgeResult expected = stepped.run();
      for (const TileEncoding encoding : kEncodings) {
        for (const std::size_t group : {1, 2, 3}) {
          check_same_bits(plain.run({0, group, encoding}), expected);
          if (!narrow) check_same_bits(plain.run({0, group, encoding, cols}), expected);
        }
      }
    }
  }
}

TEST_CASE("edge kernel: rows without edges keep what they hold, tiles without edges do nothing") {
  const EdgeCase on(Graph{300, 10, {{}, {{299, 9}}, {}}}, 1);
  const Dense x = random_dense(on.sources(), 9, 1), start = random_dense(300, 9, 2);
  EdgeTrial<float> work(on);
  const int product =
      work.step("scale_rows",
                {work.value(work.streamed(x)), work.value(work.carried(EdgeLoad::kWeights, 1))}, 9);
  work.sum(product, start);
  work.max(product, work.winner_key([](std::int64_t source) { return source; }));
  Dense expected = start, largest(300, 9), winner(300, 9);
  for (std::int64_t c = 0; c < 9; ++c) {
    const float value = static_cast<float>(x(19, c)) * on.weights[1][0];
    expected(299, c) = static_cast<float>(start(299, c)) + value;
    largest(299, c) = value;
    winner(299, c) = static_cast<double>(winner_key(19, 0));
  }
  for (const TileEncoding encoding : kEncodings) {
    const EdgeResult result = work.run({8, 99, encoding});
    check_equal(result.accumulators[0], expected);
    check_equal(result.accumulators[1], largest);
    check_equal(result.accumulators[2], winner);
  }
}

TEST_CASE("edge kernel: the last local ids of the largest span and block") {
  const EdgeCase on(Graph{65536, 65536, {{{0, 65535}, {0, 65535}, {254, 1}, {65535, 65535}}}}, 1);
  const Dense x = random_dense(on.sources(), 3, 1), y = random_dense(65536, 3, 2);
  EdgeTrial<double> work(on);
  work.sum(work.step("mul", {work.value(work.streamed(x)), work.value(work.resident(y))}, 3));
  const Dense expected =
      sum_of(on, 3, [&](auto& e, auto c) { return x(e.source, c) * y(e.row, c); });
  for (const TileEncoding encoding : kEncodings) {
    check_equal(work.run({8, 99, encoding}).accumulators[0], expected);
  }
}

TEMPLATE_TEST_CASE("edge kernel: a sum with factors has the bits of products that are made first",
                   "", float, double) {
  const auto v = EdgeTrial<TestType>::value;
  for (const std::int64_t cols : kEdgeWidths) {
    const EdgeCase on = edge_case(cols);
    const Dense x = random_dense(on.sources(), cols, 1);
    // Rows as they lie, and rows computed for the edge; weights, and a factor computed for it.
    const auto run = [&](bool plain, bool makes_products, const Cut& cut) {
      EdgeTrial<TestType> work(on);
      const int weights = work.carried(EdgeLoad::kWeights, 1);
      const auto add = [&](int rows, int factor) {
        if (!makes_products) return work.sum(rows, factor);
        work.sum(work.step("scale_rows", {v(rows), v(factor)}, cols));
      };
      const int rows = work.streamed(x);
      add(rows, weights);
      if (plain) return work.run(cut);
      add(work.step("tanh", {v(rows)}, cols), work.step("sigmoid", {v(weights)}, 1));
      return work.run(cut);
    };
    const EdgeResult one = run(true, true, {}), two = run(false, true, {});
    CHECK_CLOSE(one.accumulators[0],
                sum_of(on, cols, [&](auto& e, auto c) { return e.weight * x(e.source, c); }),
                tolerance<TestType>(kTerms));
    for (const TileEncoding encoding : kEncodings) {
      for (const std::size_t group : {std::size_t{1}, std::size_t{99}}) {
        for (const std::int64_t sliced : {std::int64_t{0}, cols}) {
          INFO(cols << " columns, groups of " << group << ", sliced " << sliced);
          check_same_bits(run(true, false, {32, group, encoding, sliced}), one);
          check_same_bits(run(false, false, {7, group, encoding, sliced}), two);
        }
      }
    }
  }
}

}  // namespace ooc::testing
