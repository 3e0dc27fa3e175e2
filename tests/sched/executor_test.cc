#include "sched/executor.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/cpu_backend.h"
#include "storage/dataset_tensor.h"
#include "storage/errors.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/tiny_dataset.h"

namespace ooc {
namespace {

constexpr std::int64_t kVertices = 3000;
constexpr std::int64_t kCols = 40;  // a whole slice and a narrow one

test::TinyDataset small_blocks() {
  test::TinyDataset spec;
  spec.vertices = kVertices;
  spec.feature_cols = kCols;
  spec.block_rows = 128;
  spec.span_rows = 256;
  spec.panel_blocks = 3;
  spec.edges = test::random_edges(kVertices, 20000, 5);
  return spec;
}

// a = relu(x); b = sum of a over in-edges and self loops; c = tanh(b);
// d = sum over out-edges of (neighbour's c) x (own a). Outputs c and d.
struct TwoHops {
  Program program;
  ValueId x, a, b, c, d, squares, sum_c, sum_d;

  TwoHops() {
    x = add("features", ValueKind::kInput, kCols);
    a = add("a", ValueKind::kVertex, kCols);
    b = add("b", ValueKind::kVertex, kCols);
    c = add("c", ValueKind::kVertex, kCols);
    d = add("d", ValueKind::kVertex, kCols);
    squares = add("squares", ValueKind::kReduction, 1);
    sum_c = add("sum_c", ValueKind::kReduction, kCols);
    sum_d = add("sum_d", ValueKind::kReduction, kCols);
    program.stages.resize(3);
    Stage& rows = program.stages[0];
    rows.name = "a";
    rows.steps = {{"relu", {x}, {a}, {}}, {"dot_sum", {a, a}, {squares}, {}}};
    Stage& in = program.stages[1];
    in.name = "b";
    const ValueId of_source = add("a_u", ValueKind::kEdge, kCols);
    in.propagation = Propagation{Direction::kIn,
                                 true,
                                 {{EdgeLoad::kStreamed, a, of_source}},
                                 {},
                                 {{Fold::kSum, {of_source}, {b}}},
                                 kCols};
    in.steps = {{"tanh", {b}, {c}, {}}, {"column_sum", {c}, {sum_c}, {}}};
    Stage& out = program.stages[2];
    out.name = "d";
    const ValueId far = add("c_v", ValueKind::kEdge, kCols);
    const ValueId own = add("a_u", ValueKind::kEdge, kCols);
    const ValueId product = add("product", ValueKind::kEdge, kCols);
    out.propagation = Propagation{Direction::kOut,
                                  false,
                                  {{EdgeLoad::kStreamed, c, far}, {EdgeLoad::kResident, a, own}},
                                  {{"mul", {far, own}, {product}, {}}},
                                  {{Fold::kSum, {product}, {d}}},
                                  kCols};
    out.steps = {{"column_sum", {d}, {sum_d}, {}}};
    program.outputs = {c, d};
  }

  ValueId add(const std::string& name, ValueKind kind, std::int64_t cols) {
    program.values.push_back({name, kind, kind == ValueKind::kReduction ? 1 : 0, cols});
    return static_cast<ValueId>(program.values.size()) - 1;
  }
};

using Rows = std::vector<double>;

// The same in double, edge by edge.
struct Reference {
  Rows c, d;

  explicit Reference(const test::TinyDataset& spec) {
    const auto at = [](std::int64_t v, std::int64_t col) {
      return static_cast<std::size_t>(v * kCols + col);
    };
    Rows a(static_cast<std::size_t>(kVertices * kCols)), b(a.size());
    d.resize(a.size());
    std::vector<bool> loop(static_cast<std::size_t>(kVertices));
    for (std::int64_t v = 0; v < kVertices; ++v) {
      for (std::int64_t col = 0; col < kCols; ++col) {
        a[at(v, col)] = std::max(0.0, static_cast<double>(test::tiny_feature(spec, v, col)));
      }
    }
    for (const Edge& edge : spec.edges) {
      if (edge.source == edge.destination) loop[static_cast<std::size_t>(edge.source)] = true;
      for (std::int64_t col = 0; col < kCols; ++col) {
        b[at(edge.destination, col)] += a[at(edge.source, col)];
      }
    }
    for (std::int64_t v = 0; v < kVertices; ++v) {
      for (std::int64_t col = 0; col < kCols && !loop[static_cast<std::size_t>(v)]; ++col) {
        b[at(v, col)] += a[at(v, col)];
      }
    }
    for (const double sum : b) c.push_back(std::tanh(sum));
    for (const Edge& edge : spec.edges) {
      for (std::int64_t col = 0; col < kCols; ++col) {
        d[at(edge.source, col)] += c[at(edge.destination, col)] * a[at(edge.source, col)];
      }
    }
  }
};

GraphCounts counts_of(const Dataset& dataset) {
  const auto of = [&](Direction direction) {
    const EdgeFile& file = dataset.edge_file(direction);
    EdgeBytes counts{static_cast<std::int64_t>(file.payload_bytes()), {}};
    for (std::uint64_t chunk = 0; chunk < file.file().shape().chunk_count; ++chunk) {
      counts.chunk_bytes.push_back(static_cast<std::int64_t>(file.file().entry(chunk).bytes));
    }
    return counts;
  };
  GraphCounts counts;
  counts.edges = dataset.manifest().edges;
  counts.in = of(Direction::kIn);
  counts.out = of(Direction::kOut);
  return counts;
}

struct Result {
  std::vector<float> c, d;
  std::vector<float> sums;
  Plan plan;
  std::vector<RunCounters> runs;
};

// One program over one dataset in memory, planned and run in many ways.
class Harness {
 public:
  Harness() : dataset_(test::write_tiny_dataset(files_, spec_)), io_(files_), faulty_(io_) {}

  const test::TinyDataset& spec() const { return spec_; }
  test::FaultyBlockIo& io() { return faulty_; }
  Plan plan(const PlanOptions& options) const {
    return make_plan({&hops_.program}, counts_of(dataset_), options);
  }

  Result run(const PlanOptions& options, int runs = 2, const std::atomic<bool>* stop = nullptr) {
    Result result;
    result.plan = plan(options);
    const DatasetTensor features(faulty_, *dataset_.tensor("features"));
    const DatasetTensor degrees(faulty_, *dataset_.tensor("degrees"));
    std::map<std::string, TensorStore*> inputs = {
        {"features", const_cast<DatasetTensor*>(&features)},
        {"degrees", const_cast<DatasetTensor*>(&degrees)}};
    Executor executor(*backend_, faulty_, dataset_, {&hops_.program}, result.plan, inputs,
                      {"/", options.workers});
    for (int i = 0; i < runs; ++i) {
      if (!executor.run(0, {}, stop)) return result;
      result.runs.push_back(executor.take_counters());
    }
    const auto output = [&](ValueId id) {
      std::vector<float> rows(static_cast<std::size_t>(kVertices * kCols));
      executor.read_output(0, id, 0, executor.layout(0, id).block_count(), rows.data());
      return rows;
    };
    result.c = output(hops_.c);
    result.d = output(hops_.d);
    for (const ValueId id : {hops_.squares, hops_.sum_c, hops_.sum_d}) {
      const auto* values = reinterpret_cast<const float*>(executor.reduction(0, id).data());
      result.sums.insert(result.sums.end(), values,
                         values + hops_.program.values[static_cast<std::size_t>(id)].cols);
    }
    return result;
  }

 private:
  test::TinyDataset spec_ = small_blocks();
  test::MemoryFileSystem files_;
  Dataset dataset_;
  test::MemoryBlockIo io_;
  test::FaultyBlockIo faulty_;
  std::unique_ptr<Backend> backend_ = make_cpu_backend();
  TwoHops hops_;
};

void check_close(const std::vector<float>& values, const Rows& expected) {
  REQUIRE(values.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(values[i]) - expected[i]));
  }
  CHECK(worst < 1e-4);
}

void check_same(const Result& result, const Result& expected) {
  CHECK(result.c == expected.c);
  CHECK(result.d == expected.d);
  CHECK(result.sums == expected.sums);
}

// Bytes behind the first run are the plan's.
void check_bytes(const Result& result) {
  for (std::size_t i = 1; i < result.runs.size(); ++i) {
    CHECK(result.runs[i].bytes_read == result.plan.bytes_read);
    CHECK(result.runs[i].bytes_written == result.plan.bytes_written);
  }
}

}  // namespace

TEST_CASE("executor: without a limit, everything is read once and the result is right") {
  Harness harness;
  const Result result = harness.run({.workers = 2});
  const Reference reference(harness.spec());
  check_close(result.c, reference.c);
  check_close(result.d, reference.d);
  check_bytes(result);
  CHECK(result.runs[0].bytes_read > kVertices * kCols * 4);
  CHECK(result.runs[1].bytes_read == 0);
  CHECK(result.runs[1].bytes_written == 0);
}

TEST_CASE("executor: results are the same bits for every strategy, split and number of workers") {
  Harness harness;
  const Result expected = harness.run({.workers = 1});
  for (const Strategy strategy : {Strategy::kNone, Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
    for (const std::int64_t part_blocks : {0, 4, 8}) {
      for (const std::int64_t slices : {0, 1}) {
        for (const std::int64_t span_group : {0, 1, 3}) {
          INFO("strategy " << static_cast<int>(strategy) << ", parts of " << part_blocks
                           << " blocks, slices " << slices << ", span group " << span_group);
          const Result result = harness.run({.strategy = strategy,
                                             .workers = 3,
                                             .part_blocks = part_blocks,
                                             .slices_at_once = slices,
                                             .span_group = span_group});
          check_same(result, expected);
          check_bytes(result);
        }
      }
    }
  }
}

TEST_CASE("executor: results are the same bits for every budget, down to the least") {
  Harness harness;
  const Result expected = harness.run({.workers = 1});
  for (const Strategy strategy : {Strategy::kDp, Strategy::kLp}) {
    std::int64_t runs = 0, last_bytes = 0;
    for (std::int64_t budget = 4 << 20; budget > 64 << 10; budget = budget * 3 / 4) {
      PlanOptions options{.strategy = strategy, .memory_bytes = budget, .workers = 2};
      try {
        harness.plan(options);
      } catch (const BudgetError&) {
        break;
      }
      INFO("strategy " << static_cast<int>(strategy) << ", budget " << budget);
      const Result result = harness.run(options, 3);
      check_same(result, expected);
      check_bytes(result);
      last_bytes = result.plan.bytes_read;
      ++runs;
    }
    CHECK(runs >= 4);
    CHECK(last_bytes > 0);
  }
}

TEST_CASE(
    "executor: a failing read or write ends the run with its error, and the next run is right") {
  Harness harness;
  const PlanOptions options{.strategy = Strategy::kNone, .workers = 2, .part_blocks = 8};
  const Result expected = harness.run({.workers = 1});
  for (const std::int64_t first : {1, 20, 60}) {
    harness.io().faults = {};
    harness.io().faults.first_failing_read = harness.io().reads + first;
    CHECK_THROWS_AS(harness.run(options), IoError);
    harness.io().faults = {};
    harness.io().faults.first_failing_write = harness.io().writes + first;
    CHECK_THROWS_AS(harness.run(options), IoError);
  }
  harness.io().faults = {};
  check_same(harness.run(options), expected);
}

TEST_CASE("executor: a set stop ends the run at once") {
  Harness harness;
  const std::atomic<bool> stop{true};
  CHECK(harness.run({.strategy = Strategy::kNone}, 1, &stop).runs.empty());
}

TEST_CASE("executor: no read is larger than a span's slice") {
  Harness harness;
  harness.run({.strategy = Strategy::kNone, .workers = 2, .part_blocks = 8});
  CHECK(harness.io().largest_read <= 256u * 32 * 4 * 4);
}

}  // namespace ooc
