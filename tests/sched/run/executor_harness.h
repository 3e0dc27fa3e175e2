// A program of two propagations over a small dataset in memory, planned and run in many ways.
#pragma once

#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device/cpu_backend.h"
#include "sched/plan/io_chunks.h"
#include "sched/plan/search/planner.h"
#include "sched/run/executor.h"
#include "storage/stores/dataset_tensor.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/tiny_dataset.h"

namespace ooc::test {

inline constexpr std::int64_t kVertices = 3000;
inline constexpr std::int64_t kCols = 40;  // a whole slice and a narrow one

inline TinyDataset small_blocks() {
  TinyDataset spec;
  spec.vertices = kVertices;
  spec.feature_cols = kCols;
  spec.block_rows = 128;
  spec.span_rows = 256;
  spec.panel_blocks = 3;
  spec.edges = random_edges(kVertices, 20000, 5);
  return spec;
}

// a = relu(x); b = sum of a over in-edges and self loops; c = tanh(b);
// d = sum over out-edges of (neighbour's c) x (own a). Outputs c and d.
struct TwoHops {
  Program program;
  ValueId x, a, b, c, d, squares, sum_c, sum_d;
  std::vector<ValueId> sums;  // the reductions

  explicit TwoHops(std::int64_t cols = kCols) {
    x = add("features", ValueKind::kInput, cols);
    a = add("a", ValueKind::kVertex, cols);
    b = add("b", ValueKind::kVertex, cols);
    c = add("c", ValueKind::kVertex, cols);
    d = add("d", ValueKind::kVertex, cols);
    squares = add("squares", ValueKind::kReduction, 1);
    sum_c = add("sum_c", ValueKind::kReduction, cols);
    sum_d = add("sum_d", ValueKind::kReduction, cols);
    program.stages.resize(3);
    Stage& rows = program.stages[0];
    rows.name = std::string("a");
    rows.steps = {{"relu", {x}, {a}, {}}, {"dot_sum", {a, a}, {squares}, {}}};
    Stage& in = program.stages[1];
    in.name = std::string("b");
    const ValueId of_source = add("a_u", ValueKind::kEdge, cols);
    in.propagation = Propagation{Direction::kIn,
                                 true,
                                 {{EdgeLoad::kStreamed, a, of_source}},
                                 {},
                                 {{Fold::kSum, {of_source}, {b}}},
                                 cols};
    in.steps = {{"tanh", {b}, {c}, {}}, {"column_sum", {c}, {sum_c}, {}}};
    Stage& out = program.stages[2];
    out.name = std::string("d");
    const ValueId far = add("c_v", ValueKind::kEdge, cols);
    const ValueId own = add("a_u", ValueKind::kEdge, cols);
    const ValueId product = add("product", ValueKind::kEdge, cols);
    out.propagation = Propagation{Direction::kOut,
                                  false,
                                  {{EdgeLoad::kStreamed, c, far}, {EdgeLoad::kResident, a, own}},
                                  {{"mul", {far, own}, {product}, {}}},
                                  {{Fold::kSum, {product}, {d}}},
                                  cols};
    out.steps = {{"column_sum", {d}, {sum_d}, {}}};
    program.outputs = {c, d};
    sums = {squares, sum_c, sum_d};
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

  explicit Reference(const TinyDataset& spec) {
    const std::int64_t vertices = spec.vertices, cols = spec.feature_cols;
    const auto at = [cols](std::int64_t v, std::int64_t col) {
      return static_cast<std::size_t>(v * cols + col);
    };
    Rows a(static_cast<std::size_t>(vertices * cols)), b(a.size());
    d.resize(a.size());
    std::vector<bool> loop(static_cast<std::size_t>(vertices));
    for (std::int64_t v = 0; v < vertices; ++v) {
      for (std::int64_t col = 0; col < cols; ++col) {
        a[at(v, col)] = std::max(0.0, static_cast<double>(tiny_feature(spec, v, col)));
      }
    }
    for (const Edge& edge : spec.edges) {
      if (edge.source == edge.destination) loop[static_cast<std::size_t>(edge.source)] = true;
      for (std::int64_t col = 0; col < cols; ++col) {
        b[at(edge.destination, col)] += a[at(edge.source, col)];
      }
    }
    for (std::int64_t v = 0; v < vertices; ++v) {
      for (std::int64_t col = 0; col < cols && !loop[static_cast<std::size_t>(v)]; ++col) {
        b[at(v, col)] += a[at(v, col)];
      }
    }
    for (const double sum : b) c.push_back(std::tanh(sum));
    for (const Edge& edge : spec.edges) {
      for (std::int64_t col = 0; col < cols; ++col) {
        d[at(edge.source, col)] += c[at(edge.destination, col)] * a[at(edge.source, col)];
      }
    }
  }
};

inline GraphCounts counts_of(const Dataset& dataset) {
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
  std::vector<PassReport> passes;  // of the last run
  RunCounters outputs;             // of reading c and d
};

// An executor with all that it needs.
struct Session {
  Session(Backend& device, BlockIo& io, const Dataset& dataset, const TwoHops& program,
          const Plan& planned, std::int64_t workers, std::vector<Backend*> others = {})
      : backend(device),
        hops(program),
        plan(planned),
        features(io, *dataset.tensor("features")),
        degrees(io, *dataset.tensor("degrees")),
        executor({backend, io, dataset, "/", workers, std::move(others)}, {&hops.program}, plan,
                 {{"features", &features}, {"degrees", &degrees}}) {}

  // Until one is stopped.
  Result run(int runs, const std::atomic<bool>* stop = nullptr) {
    Result result;
    result.plan = plan;
    for (int i = 0; i < runs; ++i) {
      if (!executor.run(0, {}, stop)) return result;
      result.runs.push_back(executor.take_counters());
    }
    result.passes = executor.reports(0);
    result.c = output(hops.c);
    result.d = output(hops.d);
    result.outputs = executor.take_counters();
    for (const ValueId id : hops.sums) {
      const std::size_t first = result.sums.size();
      const auto count =
          static_cast<std::size_t>(hops.program.values[static_cast<std::size_t>(id)].cols);
      result.sums.resize(first + count);
      Queue& queue = backend.queue(QueueKind::kOut);
      queue.copy(result.sums.data() + first, executor.reduction(0, id),
                 count * sizeof(result.sums[0]));
      queue.wait(queue.record());
    }
    return result;
  }

  std::vector<float> output(ValueId id) {
    const TensorLayout layout = executor.layout(0, id);
    std::vector<float> rows(static_cast<std::size_t>(layout.rows * layout.cols));
    executor.read_output(0, id, 0, layout.block_count(), rows.data());
    return rows;
  }

  Backend& backend;
  const TwoHops& hops;
  Plan plan;
  DatasetTensor features, degrees;
  Executor executor;
};

// One program over one dataset in memory, planned and run in many ways.
class Harness {
 public:
  explicit Harness(const TinyDataset& spec = small_blocks())
      : Harness(spec, TwoHops(spec.feature_cols)) {}
  Harness(const TinyDataset& spec, TwoHops hops)
      : spec_(spec),
        dataset_(write_tiny_dataset(files_, spec_)),
        io_(files_),
        faulty_(io_),
        hops_(std::move(hops)) {}

  const TinyDataset& spec() const { return spec_; }
  const Dataset& dataset() const { return dataset_; }
  const TwoHops& hops() const { return hops_; }
  FaultyBlockIo& io() { return faulty_; }
  Plan plan(const PlanOptions& options) const {
    return make_plan({&hops_.program}, counts_of(dataset_), options);
  }

  std::unique_ptr<Session> open(Backend& backend, const Plan& plan, std::int64_t workers,
                                std::vector<Backend*> others = {}) {
    return std::make_unique<Session>(backend, faulty_, dataset_, hops_, plan, workers,
                                     std::move(others));
  }
  // On the CPU.
  Result run(const PlanOptions& options, int runs = 2, const std::atomic<bool>* stop = nullptr) {
    return open(*backend_, plan(options), options.workers)->run(runs, stop);
  }

 private:
  TinyDataset spec_;
  MemoryFileSystem files_;
  Dataset dataset_;
  MemoryBlockIo io_;
  FaultyBlockIo faulty_;
  std::unique_ptr<Backend> backend_ = make_cpu_backend();
  TwoHops hops_;
};

// Whether a run is given up that is told to stop by its read of that number.
inline bool stops(Session& session, FaultyBlockIo& io, std::int64_t read) {
  std::atomic<bool> stop{false};
  io.stop_at_read = io.reads + read;
  io.stop = &stop;
  const bool stopped = session.run(1, &stop).runs.empty();
  io.stop = nullptr;
  return stopped;
}

inline void check_close(const std::vector<float>& values, const Rows& expected) {
  REQUIRE(values.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(values[i]) - expected[i]));
  }
  CHECK(worst < 1e-4);
}

inline void check_same(const Result& result, const Result& expected) {
  CHECK((result.c == expected.c));  // as one value: millions of numbers would be printed
  CHECK((result.d == expected.d));
  CHECK((result.sums == expected.sums));
}

// Bytes after the first run are the plan's.
inline void check_bytes(const Result& result) {
  for (std::size_t i = 1; i < result.runs.size(); ++i) {
    CHECK(result.runs[i].bytes_read == result.plan.bytes_read);
    CHECK(result.runs[i].bytes_written == result.plan.bytes_written);
  }
}

}  // namespace ooc::test
