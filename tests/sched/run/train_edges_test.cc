// Propagations that pass over neighbours outside the train split: whichever plan brings the splits,
// they meet the rows they belong to.
#include "kernels/device/virtual_device.h"
#include "sched/plan/search/planner.h"
#include "storage/base/errors.h"
#include "tests/sched/run/executor_harness.h"
#include "tests/support/plan_programs.h"

namespace ooc::test {
namespace {

// a = the features; b = the sum of a over out-edges into the train split. Unlike a gradient, a is
// zero nowhere: an edge too many or too few shows.
struct TrainSum {
  Program program;
  ValueId b = 4;

  TrainSum() {
    program.values = {{"features", ValueKind::kInput, 0, kCols},
                      {"splits", ValueKind::kInput, 0, 1, DType::kU8},
                      {"a", ValueKind::kVertex, 0, kCols},
                      {"a_v", ValueKind::kEdge, 0, kCols},
                      {"b", ValueKind::kVertex, 0, kCols}};
    program.stages.resize(2);
    program.stages[0].steps = {{"copy", {0}, {2}, {}}};
    program.stages[1].propagation = Propagation{
        Direction::kOut, true, {{EdgeLoad::kStreamed, 2, 3}}, {}, {{Fold::kSum, {3}, {b}}},
        kCols,           1};
    program.outputs = {b};
  }
};

class TrainBench {
 public:
  explicit TrainBench(std::int64_t train_every)
      : spec_(small_blocks()), dataset_(write(train_every)), io_(files_) {}

  GraphCounts counts() const {
    GraphCounts counts = counts_of(dataset_);
    counts.train_vertices = dataset_.manifest().split_counts[0];
    return counts;
  }
  Plan plan(const PlanOptions& options) const {
    return make_plan({&sum_.program}, counts(), options);
  }

  std::vector<float> run(const PlanOptions& options) {
    const Plan planned = plan(options);
    const auto backend = options.device ? make_virtual_cpu_device("cpu:1", 0) : make_cpu_backend();
    DatasetTensor features(io_, *dataset_.tensor("features"));
    DatasetTensor splits(io_, *dataset_.tensor("splits"));
    DatasetTensor degrees(io_, *dataset_.tensor("degrees"));
    Executor executor({*backend, io_, dataset_, "/", options.workers}, {&sum_.program}, planned,
                      {{"features", &features}, {"splits", &splits}, {"degrees", &degrees}});
    for (int i = 0; i < 2; ++i) REQUIRE(executor.run(0, {}, nullptr));
    executor.take_counters();
    REQUIRE(executor.run(0, {}, nullptr));
    const RunCounters counters = executor.take_counters();
    CHECK(counters.bytes_read == planned.bytes_read);
    CHECK(counters.bytes_written == planned.bytes_written);
    CHECK(counters.bytes_to_device == planned.bytes_to_device);
    std::vector<float> rows(static_cast<std::size_t>(kVertices * kCols));
    executor.read_output(0, sum_.b, 0, executor.layout(0, sum_.b).block_count(), rows.data());
    return rows;
  }

  // Over all neighbours, or those in the train split.
  Rows reference(std::int64_t train_every, bool all) const {
    Rows sums(static_cast<std::size_t>(kVertices * kCols));
    std::vector<bool> loop(static_cast<std::size_t>(kVertices));
    const auto add = [&](std::int64_t to, std::int64_t from) {
      const bool train = (from % 5 == 0 || from % 5 == 2) && from % train_every == 0;
      for (std::int64_t c = 0; c < kCols && (all || train); ++c) {
        sums[static_cast<std::size_t>(to * kCols + c)] +=
            static_cast<double>(tiny_feature(spec_, from, c));
      }
    };
    for (const Edge& edge : spec_.edges) {
      add(edge.source, edge.destination);
      if (edge.source == edge.destination) loop[static_cast<std::size_t>(edge.source)] = true;
    }
    for (std::int64_t v = 0; v < kVertices; ++v) {
      if (!loop[static_cast<std::size_t>(v)]) add(v, v);
    }
    return sums;
  }

 private:
  Dataset write(std::int64_t train_every) {
    spec_.train_every = train_every;
    return write_tiny_dataset(files_, spec_);
  }

  TinyDataset spec_;
  MemoryFileSystem files_;
  Dataset dataset_;
  MemoryBlockIo io_;
  TrainSum sum_;
};

bool passes_over(const Plan& plan) {
  for (const Pass& pass : plan.sections[0].passes) {
    if (pass.kind == PassKind::kPropagate) return pass.propagation.splits >= 0;
  }
  return false;
}

}  // namespace

TEST_CASE("train edges: only neighbours in the train split are summed, under every plan") {
  constexpr std::int64_t kEvery = 20;
  TrainBench bench(kEvery);
  const std::vector<float> expected = bench.run({.workers = 1});
  check_close(expected, bench.reference(kEvery, false));
  for (const Strategy strategy : {Strategy::kNone, Strategy::kLp}) {
    for (const std::int64_t dst_range_blocks : {0, 4}) {
      for (const std::int64_t slices : {0, 1}) {
        for (const std::int64_t span_group : {0, 1, 3}) {
          INFO("strategy " << static_cast<int>(strategy) << ", parts of " << dst_range_blocks
                           << " blocks, slices " << slices << ", span group " << span_group);
          CHECK(bench.run({.strategy = strategy,
                           .workers = 3,
                           .dst_range_blocks = dst_range_blocks,
                           .slices_at_once = slices,
                           .span_group = span_group}) == expected);
        }
      }
    }
  }
}

TEST_CASE("train edges: in any budget, of the host and of a device") {
  TrainBench bench(20);
  const std::vector<float> expected = bench.run({.workers = 1});
  for (const bool device : {false, true}) {
    std::int64_t runs = 0;
    for (std::int64_t budget = 3 << 20; runs < 30; budget = budget * 3 / 4, ++runs) {
      PlanOptions options{.memory_bytes = budget, .workers = 2};
      if (device) {
        options.device = true;
        options.device_memory_bytes = budget;
      }
      INFO((device ? "device, " : "") << budget << " bytes");
      try {
        bench.plan(options);
      } catch (const BudgetError&) {
        break;
      }
      CHECK(bench.run(options) == expected);
    }
    CHECK(runs >= 4);
    CHECK(runs < 30);
  }
}

TEST_CASE("train edges: where many vertices are in the train split, every edge is taken") {
  TrainBench few(10), many(2);
  CHECK(passes_over(few.plan({})));
  CHECK_FALSE(passes_over(many.plan({})));
  check_close(many.run({.workers = 2}), many.reference(2, true));
  GraphCounts unknown = few.counts();
  unknown.train_vertices = 0;
  const TrainSum sum;
  CHECK_FALSE(passes_over(make_plan({&sum.program}, unknown)));
}

TEST_CASE("train edges: fewer of them are predicted to take less time") {
  const TrainSum sum;
  const auto seconds = [&](std::int64_t train) {
    GraphCounts graph = graph_counts(1 << 20, 30 << 20);
    graph.train_vertices = train;
    return make_plan({&sum.program}, graph).sections[0].passes[1].seconds;
  };
  const double all = seconds(1 << 20);
  CHECK(seconds(1 << 19) == all);
  CHECK(seconds((1 << 20) / 10) < all);
  CHECK(seconds((1 << 20) / 100) < seconds((1 << 20) / 10));
  CHECK(seconds((1 << 20) / 100) < all / 2);
}

}  // namespace ooc::test
