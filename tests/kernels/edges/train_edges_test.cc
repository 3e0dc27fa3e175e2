// Edges whose neighbours are outside the train split are passed over: nothing of their rows reaches
// a sum, and the rest is the same bits as if those rows were zero.
#include <limits>

#include "tests/kernels/edges/edge_harness.h"

namespace ooc::testing {
namespace {

constexpr std::int64_t kColumns[] = {1, 3, 8, 9, 33, 70};

// Some in the train split, all or none in one of the spans.
Dense random_splits(const EdgeCase& on, unsigned percent) {
  std::mt19937 engine(percent);
  Dense splits(on.sources(), 1);
  for (std::int64_t row = 0; row < splits.rows; ++row) {
    splits(row, 0) = engine() % 100 < percent ? 1 : static_cast<double>(engine() % 3 * 3 % 4);
    if (row / on.graph.span_rows == 1) splits(row, 0) = percent > 50 ? 1 : 2;
  }
  return splits;
}

Dense outside_train(const Dense& rows, const Dense& splits, double value) {
  Dense changed = rows;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    for (std::int64_t c = 0; c < rows.cols && splits(row, 0) != 1; ++c) changed(row, c) = value;
  }
  return changed;
}

// The sum of neighbours' rows; of two tensors, one of them times the edges' weights.
template <class T>
EdgeResult plain(const EdgeCase& on, const Dense& x, const Dense& y, const Dense* splits,
                 const Cut& cut) {
  EdgeTrial<T> work(on);
  work.sum(work.streamed(x));
  if (splits != nullptr) work.splits(*splits);
  work.sum(work.streamed(y), work.carried(EdgeLoad::kWeights, 1));
  return work.run(cut);
}

// Of products with all that an edge may bring along.
template <class T>
EdgeResult fused(const EdgeCase& on, const Dense& x, const Dense* splits, const Cut& cut) {
  using Work = EdgeTrial<T>;
  const auto v = Work::value;
  Work work(on);
  const int own = work.resident(random_dense(on.graph.rows, x.cols, 4));
  if (splits != nullptr) work.splits(*splits);
  const int product = work.step("mul", {v(work.streamed(x)), v(own)}, x.cols);
  const int features = work.carried(EdgeLoad::kFeatures, x.cols);
  const int rich = work.step("mul", {v(product), v(features)}, x.cols);
  const int weighted =
      work.step("scale_rows", {v(rich), v(work.carried(EdgeLoad::kWeights, 1))}, x.cols);
  Attributes drop;
  drop.value = 0.3;
  drop.key = 5;
  const int key = work.key([](std::int64_t source) { return 1000 - source; });
  work.sum(work.step("edge_dropout", {v(weighted), v(key)}, x.cols, drop));
  return work.run(cut);
}

template <class Check>
void for_each_cut(std::int64_t cols, Check&& check) {
  for (const TileEncoding encoding : {TileEncoding::kRuns, TileEncoding::kPairs}) {
    for (const std::int64_t batch : {1, 7, 512}) {
      for (const std::size_t group : {std::size_t{1}, std::size_t{99}}) {
        for (const std::int64_t sliced : {std::int64_t{0}, cols}) {
          INFO(cols << " columns, batches of " << batch << ", groups of " << group << ", sliced "
                    << sliced);
          check(Cut{batch, group, encoding, sliced});
        }
      }
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("train edges: a poisoned row outside the train split reaches no sum", "", float,
                   double) {
  const double poison = std::numeric_limits<double>::quiet_NaN();
  for (const std::int64_t cols : kColumns) {
    const EdgeCase on(random_graph(400, 60, 500, 9), cols);
    const Dense x = random_dense(on.sources(), cols, 1), y = random_dense(on.sources(), cols, 2);
    for (const unsigned percent : {0u, 10u, 60u}) {
      const Dense splits = random_splits(on, percent);
      const auto zero = [&](const Dense& rows) { return outside_train(rows, splits, 0); };
      const auto bad = [&](const Dense& rows) { return outside_train(rows, splits, poison); };
      const EdgeResult sums = plain<TestType>(on, zero(x), zero(y), nullptr, {});
      const EdgeResult products = fused<TestType>(on, zero(x), nullptr, {});
      for_each_cut(cols, [&](const Cut& cut) {
        check_same_bits(plain<TestType>(on, bad(x), bad(y), &splits, cut), sums);
        check_same_bits(fused<TestType>(on, bad(x), &splits, cut), products);
      });
    }
  }
}

TEST_CASE("train edges: the first and last of a tile, and parallel ones, are taken in order") {
  const EdgeCase on(
      {65536, 65536, {{{0, 65535}, {0, 65535}, {254, 1}, {300, 2}, {65535, 65535}}, {}, {{9, 3}}}},
      1);
  Dense x(on.sources(), 3), splits(on.sources(), 1);
  for (std::int64_t row = 0; row < x.rows; ++row) {
    splits(row, 0) = row % 65536 == 65535 || row % 65536 == 2 ? 1 : 0;
    for (std::int64_t c = 0; c < 3; ++c) x(row, c) = static_cast<double>(row % 1000 + c);
  }
  EdgeTrial<float> work(on);
  work.splits(splits);
  work.sum(work.streamed(x));
  for (const TileEncoding encoding : {TileEncoding::kRuns, TileEncoding::kPairs}) {
    const Dense sum = work.run({32, 99, encoding}).accumulators[0];
    for (std::int64_t c = 0; c < 3; ++c) {
      CHECK(sum(0, c) == 2 * x(65535, c));
      CHECK(sum(300, c) == x(2, c));
      CHECK(sum(65535, c) == x(65535, c));
      CHECK(sum(254, c) == 0);
      CHECK(sum(9, c) == 0);
    }
  }
}

}  // namespace ooc::testing
