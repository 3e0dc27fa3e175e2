// Folds other than sums, and sums over all edges of a batch.
#include "tests/sched/batch/batch_harness.h"

namespace ooc::test {
namespace {

constexpr std::int64_t kCols = 40, kHeads = 2;

// Calls visit(destination, source, index among parallel edges), loops among them.
template <class Visit>
void for_each_edge_of(const RandomBatch& batch, int level, bool loops, Visit&& visit) {
  std::int64_t index = 0;
  for (std::size_t i = 0; i < batch.edges.size(); ++i) {
    const BatchEdge& edge = batch.edges[i];
    const bool parallel = i > 0 && batch.edges[i - 1].destination == edge.destination &&
                          batch.edges[i - 1].source == edge.source;
    index = parallel ? index + 1 : 0;
    if (batch.segments[i] <= level) visit(edge.destination, edge.source, index);
  }
  const std::int64_t rows = batch.level_rows[static_cast<std::size_t>(level)];
  for (std::int64_t row = 0; loops && row < rows; ++row) {
    if (!batch.has_loop(row)) visit(row, row, 0);
  }
}

// At level 1: the largest x of the sources, softmax of scores, and a sum over edges.
struct Folds {
  ProgramMaker make;
  ValueId x, ids, scores_of_sources, scores_of_rows;
  ValueId largest, winner, attended, normalized, over_edges, twice;

  Folds() {
    x = make.input("x", kCols, 2);
    ids = make.input("ids", 1, 2, DType::kI64);
    scores_of_sources = make.input("sources", kHeads, 2);
    scores_of_rows = make.input("rows", kHeads, 1);
    add_largest();
    add_softmax();
    twice = make.vertex(kCols, 1);
    make.stage("twice").steps = {{"add", {normalized, largest}, {twice}, {}}};
    make.program.outputs = {largest, winner, normalized, twice};
  }
  void add_largest() {
    largest = make.vertex(kCols, 1);
    winner = make.vertex(kCols, 1, DType::kI64);
    const ValueId far = make.edge(kCols, 1), id = make.edge(1, 1, DType::kI64);
    const ValueId index = make.edge(1, 1, DType::kI64), key = make.edge(1, 1, DType::kI64);
    make.stage("largest").propagation = Propagation{Direction::kIn,
                                                    true,
                                                    {{EdgeLoad::kStreamed, x, far},
                                                     {EdgeLoad::kStreamed, ids, id},
                                                     {EdgeLoad::kParallelIndex, -1, index}},
                                                    {{"winner_key", {id, index}, {key}, {}}},
                                                    {{Fold::kMax, {far, key}, {largest, winner}}}};
  }
  void add_softmax() {
    attended = make.vertex(kCols, 1);
    const ValueId most = make.vertex(kHeads, 1), sum = make.vertex(kHeads, 1);
    normalized = make.vertex(kCols, 1);
    over_edges = make.reduction(1, kHeads);
    const ValueId far = make.edge(kCols, 1), own = make.edge(kHeads, 1);
    const ValueId of_source = make.edge(kHeads, 1), score = make.edge(kHeads, 1);
    Stage& stage = make.stage("softmax");
    stage.propagation = Propagation{
        Direction::kIn,
        true,
        {{EdgeLoad::kStreamed, x, far},
         {EdgeLoad::kStreamed, scores_of_sources, of_source},
         {EdgeLoad::kResident, scores_of_rows, own}},
        {{"add", {of_source, own}, {score}, {}}, {"column_sum", {score}, {over_edges}, {}}},
        {{Fold::kSoftmax, {score, far}, {attended, most, sum}}}};
    stage.steps = {{"softmax_normalize", {attended, sum}, {normalized}, {}}};
  }
};

struct FoldsData {
  RandomBatch batch;
  Table x, ids, sources, rows;
  BatchData memory;
  BatchGraph graph;

  FoldsData(const Folds& folds, std::vector<std::int64_t> level_rows)
      : batch(random_batch(std::move(level_rows), 3, 8)),
        x(random_table(batch.level_rows[2], kCols, 1)),
        ids(batch.level_rows[2], 1),
        sources(random_table(batch.level_rows[2], kHeads, 2)),
        rows(random_table(batch.level_rows[1], kHeads, 3)) {
    for (std::int64_t row = 0; row < ids.rows; ++row) ids.at(row, 0) = static_cast<double>(3 * row);
    memory.input<float>(folds.make.program, "x", x);
    memory.input<std::int64_t>(folds.make.program, "ids", ids);
    memory.input<float>(folds.make.program, "sources", sources);
    memory.input<float>(folds.make.program, "rows", rows);
    graph.build(batch.from());
  }
};

void check_largest(const FoldsData& data, const Table& largest, const Table& winner) {
  Table most(largest.rows, kCols), from(largest.rows, kCols);
  for_each_edge_of(data.batch, 1, true, [&](auto to, auto source, std::int64_t index) {
    const auto key = static_cast<double>(std::int64_t{source} * 3 << 24 | index) + 1;
    for (std::int64_t col = 0; col < kCols; ++col) {
      const double value = data.x.at(source, col);
      const double there = from.at(to, col);
      if (there == 0 || value > most.at(to, col) || (value == most.at(to, col) && key < there)) {
        most.at(to, col) = value;
        from.at(to, col) = key;
      }
    }
  });
  CHECK((largest.values == most.values));
  CHECK((winner.values == from.values));
}

void check_softmax(const FoldsData& data, const Table& normalized, const Table& over_edges) {
  Table sums(normalized.rows, kHeads), expected(normalized.rows, kCols), all(1, kHeads);
  for_each_edge_of(data.batch, 1, true, [&](auto to, auto source, std::int64_t) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      const double score = data.sources.at(source, head) + data.rows.at(to, head);
      all.at(0, head) += score;
      sums.at(to, head) += std::exp(score);
      for (std::int64_t col = head * kCols / kHeads; col < (head + 1) * kCols / kHeads; ++col) {
        expected.at(to, col) += std::exp(score) * data.x.at(source, col);
      }
    }
  });
  for (std::int64_t row = 0; row < expected.rows; ++row) {
    for (std::int64_t col = 0; col < kCols; ++col) {
      expected.at(row, col) /= sums.at(row, col * kHeads / kCols);
    }
  }
  check_close(normalized, expected);
  check_close(over_edges, all, 1e-4);
}

TEST_CASE("batch folds: largest, softmax and sums over edges, with added loops") {
  const Folds folds;
  const auto backend = make_cpu_backend();
  for (const std::vector<std::int64_t>& level_rows :
       {std::vector<std::int64_t>{50, 400, 1000}, {2500, 20000, 67000}, {10, 150000, 150000}}) {
    INFO(level_rows[1] << " rows");
    FoldsData data(folds, level_rows);
    std::vector<double> before;
    for (const int workers : {1, 3}) {
      BatchExecutor executor(*backend, folds.make.program);
      with_workers(workers, [&] { executor.run(data.graph, data.memory.inputs, {}); });
      const Table largest = table_of<float>(executor.output(folds.largest));
      const Table normalized = table_of<float>(executor.output(folds.normalized));
      const Table over_edges = sum_of<float>(executor, folds.make.program, folds.over_edges);
      check_largest(data, largest, table_of<std::int64_t>(executor.output(folds.winner)));
      check_softmax(data, normalized, over_edges);
      std::vector<double> bits = normalized.values;
      bits.insert(bits.end(), over_edges.values.begin(), over_edges.values.end());
      if (workers == 1) before = bits;
      CHECK((bits == before));
    }
  }
}

TEST_CASE("batch folds: the gradient of scores, by source, of batches of three hops") {
  ProgramMaker make;
  const ValueId near = make.input("near", kCols, 2), far = make.input("far", kCols, 3);
  const ValueId sum = make.vertex(kCols, 3);
  const ValueId read = make.edge(kCols, 2), own = make.edge(kCols, 2), made = make.edge(kCols, 2);
  make.stage("by source").propagation =
      Propagation{Direction::kOut,
                  true,
                  {{EdgeLoad::kStreamed, near, read}, {EdgeLoad::kResident, far, own}},
                  {{"mul", {read, own}, {made}, {}}},
                  {{Fold::kSum, {made}, {sum}}},
                  kCols};
  make.program.outputs = {sum};
  const RandomBatch batch = random_batch({3000, 30000, 68000, 140000}, 2, 4);
  const Table nears = random_table(68000, kCols, 1), fars = random_table(140000, kCols, 2);
  BatchData data;
  data.input<float>(make.program, "near", nears);
  data.input<float>(make.program, "far", fars);
  BatchGraph graph;
  graph.build(batch.from());
  const auto backend = make_cpu_backend();
  BatchExecutor executor(*backend, make.program);
  executor.run(graph, data.inputs, {});
  Table expected(140000, kCols);
  for_each_edge_of(batch, 2, true, [&](auto to, auto source, std::int64_t) {
    for (std::int64_t col = 0; col < kCols; ++col) {
      expected.at(source, col) += nears.at(to, col) * fars.at(source, col);
    }
  });
  check_close(table_of<float>(executor.output(sum)), expected);
}

}  // namespace
}  // namespace ooc::test
