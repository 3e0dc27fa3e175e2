// One training step of a mini-batch of SAGE on the CPU, by stage: the batch of two hops, 25 and 10
// edges a vertex, has 1,000, 20,000 and 170,000 rows; 100 columns, 128 hidden ones, 47 classes.
//
//   batch_bench [WORKERS]     for 1 and 2 workers, or for so many
#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device/cpu_backend.h"
#include "kernels/spec/random.h"
#include "sched/batch/batch_executor.h"
#include "sched/batch/batch_graph.h"

namespace ooc {
namespace {

constexpr std::int64_t kSeeds = 1000, kColumns = 100, kHidden = 128, kClasses = 47;
const std::vector<std::int64_t> kRows{kSeeds, 20000, 170000};
constexpr int kRuns = 15;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<BatchEdge> random_edges() {
  constexpr int kFanOuts[] = {25, 10};
  std::vector<BatchEdge> edges;
  std::uint64_t state = 1;
  for (std::int64_t row = 0; row < kRows[1]; ++row) {
    const std::size_t segment = row < kRows[0] ? 0 : 1;
    for (int i = 0; i < kFanOuts[segment]; ++i) {
      const auto bound = static_cast<std::uint64_t>(kRows[segment + 1]);
      edges.push_back(
          {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(mix64(++state) % bound)});
    }
  }
  std::sort(edges.begin(), edges.end(), [](const BatchEdge& a, const BatchEdge& b) {
    return std::pair(a.destination, a.source) < std::pair(b.destination, b.source);
  });
  return edges;
}

// Means and own rows times a matrix each; two layers, a loss, and gradients of the matrices.
struct Sage {
  Program program;
  ValueId x, labels, splits, inverse0, inverse1;
  std::vector<ValueId> parameters, gradients;

  Sage() {
    x = add(ValueKind::kInput, kColumns, 2, DType::kF32, "x");
    inverse0 = add(ValueKind::kInput, 1, 0, DType::kF32, "inverse0");
    inverse1 = add(ValueKind::kInput, 1, 1, DType::kF32, "inverse1");
    labels = add(ValueKind::kInput, 1, 0, DType::kI32, "labels");
    splits = add(ValueKind::kInput, 1, 0, DType::kU8, "splits");
    for (const std::int64_t rows : {kColumns, kColumns, kHidden, kHidden}) {
      const std::int64_t cols = rows == kColumns ? kHidden : kClasses;
      for (const ValueKind kind : {ValueKind::kParameter, ValueKind::kReduction}) {
        (kind == ValueKind::kParameter ? parameters : gradients).push_back(add(kind, cols));
        program.values.back().rows = rows;
      }
    }
    const ValueId loss = add(ValueKind::kReduction, 3, -1, DType::kF64);
    program.values.back().rows = 3;
    const ValueId mean1 = vertex(kColumns, 1), x1 = vertex(kColumns, 1);
    const ValueId mean0 = vertex(kHidden, 0), h0 = vertex(kHidden, 0);
    const ValueId h = vertex(kHidden, 1), logits = vertex(kClasses, 0);
    const ValueId d_logits = vertex(kClasses, 0);
    layer("layer 1", x, inverse1, mean1, x1, 0, h, true);
    layer("layer 2", h, inverse0, mean0, h0, 2, logits, false);
    std::vector<RowStep>& steps = program.stages.back().steps;
    Attributes transpose;
    transpose.transpose = true;
    const ValueId d_mean0 = vertex(kHidden, 0), d_sum0 = vertex(kHidden, 0);
    const ValueId d_h0 = vertex(kHidden, 0);
    steps.push_back({"softmax_cross_entropy", {logits, labels, splits}, {loss}, {}});
    steps.push_back({"softmax_cross_entropy_gradient", {logits, labels, splits}, {d_logits}, {}});
    steps.push_back({"matmul_reduce", {mean0, d_logits}, {gradients[2]}, {}});
    steps.push_back({"matmul_reduce", {h0, d_logits}, {gradients[3]}, {}});
    steps.push_back({"matmul", {d_logits, parameters[2]}, {d_mean0}, transpose});
    steps.push_back({"scale_rows", {d_mean0, inverse0}, {d_sum0}, {}});
    steps.push_back({"matmul", {d_logits, parameters[3]}, {d_h0}, transpose});
    const ValueId spread = vertex(kHidden, 1), extended = vertex(kHidden, 1);
    const ValueId d_h = vertex(kHidden, 1), d_pre = vertex(kHidden, 1);
    sum("gradients", Direction::kOut, d_sum0, spread, 0).steps = {
        {"extend_rows", {d_h0}, {extended}, {}},
        {"add", {spread, extended}, {d_h}, {}},
        {"relu_gradient", {d_h, h}, {d_pre}, {}},
        {"matmul_reduce", {mean1, d_pre}, {gradients[0]}, {}},
        {"matmul_reduce", {x1, d_pre}, {gradients[1]}, {}}};
  }

  ValueId add(ValueKind kind, std::int64_t cols, int level = -1, DType dtype = DType::kF32,
              const char* name = "") {
    program.values.push_back({name, kind, 0, cols, dtype, 1, false, level});
    return static_cast<ValueId>(program.values.size()) - 1;
  }
  ValueId vertex(std::int64_t cols, int level) { return add(ValueKind::kVertex, cols, level); }

  Stage& sum(const char* name, Direction direction, ValueId from, ValueId to, int level) {
    const std::int64_t cols = program.values[static_cast<std::size_t>(to)].cols;
    const ValueId edge = add(ValueKind::kEdge, cols, level);
    Stage& stage = program.stages.emplace_back();
    stage.name = name;
    stage.propagation = Propagation{
        direction, false, {{EdgeLoad::kStreamed, from, edge}}, {}, {{Fold::kSum, {edge}, {to}}},
        cols};
    return stage;
  }

  void layer(const char* name, ValueId from, ValueId inverse, ValueId mean, ValueId own,
             std::size_t first_parameter, ValueId to, bool relu) {
    const Value made = program.values[static_cast<std::size_t>(to)];
    const std::int64_t cols = program.values[static_cast<std::size_t>(mean)].cols;
    const ValueId sums = vertex(cols, made.level);
    const ValueId by_mean = vertex(made.cols, made.level), by_own = vertex(made.cols, made.level);
    const ValueId pre = relu ? vertex(made.cols, made.level) : to;
    Stage& stage = sum(name, Direction::kIn, from, sums, made.level);
    stage.steps = {{"scale_rows", {sums, inverse}, {mean}, {}},
                   {"first_rows", {from}, {own}, {}},
                   {"matmul", {mean, parameters[first_parameter]}, {by_mean}, {}},
                   {"matmul", {own, parameters[first_parameter + 1]}, {by_own}, {}},
                   {"add", {by_mean, by_own}, {pre}, {}}};
    if (relu) stage.steps.push_back({"relu", {pre}, {to}, {}});
  }
};

struct Inputs {
  std::unique_ptr<Backend> backend = make_cpu_backend();
  std::vector<std::unique_ptr<DeviceBuffer>> memory;  // in huge pages, as the arena
  BatchInputs rows;

  template <class T>
  void add(const Sage& sage, ValueId id, T value) {
    const Value& input = sage.program.values[static_cast<std::size_t>(id)];
    const std::int64_t count = kRows[static_cast<std::size_t>(input.level)];
    const std::int64_t bytes = batch_rows_bytes(input, count);
    std::byte* const data =
        memory.emplace_back(backend->allocate(static_cast<std::size_t>(bytes)))->data();
    std::fill_n(reinterpret_cast<T*>(data), static_cast<std::size_t>(bytes) / sizeof(T), value);
    rows[input.name] = place_batch_rows(input, count, data);
  }
};

void run(const Sage& sage, const std::vector<BatchEdge>& edges, const BatchInputs& inputs) {
  const auto backend = make_cpu_backend();
  BatchExecutor executor(*backend, sage.program);
  std::vector<float> weights(kHidden * kHidden, 0.01f);
  for (const ValueId id : sage.parameters) executor.bind_parameter(id, weights.data());
  BatchGraph graph;
  double build = 1e9, step = 1e9;
  std::vector<BatchExecutor::Seconds> stages;
  for (int i = 0; i < kRuns; ++i) {
    const double begin = now();
    graph.build({kRows, edges});
    const double built = now();
    executor.run(graph, inputs, {}, {.labels = kSeeds});
    build = std::min(build, built - begin);
    if (now() - built < step) stages = executor.seconds();
    step = std::min(step, now() - built);
  }
  const int workers = tbb::this_task_arena::max_concurrency();
  fmt::print("{} workers: tiles {:.2f} ms ({:.1f} ns an edge and worker), step {:.2f} ms\n",
             workers, build * 1e3, build * 1e9 * workers / static_cast<double>(edges.size()),
             step * 1e3);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    fmt::print("  {:10} edges {:6.2f} ms, rows {:6.2f} ms\n", sage.program.stages[i].name,
               stages[i].edges * 1e3, stages[i].rows * 1e3);
  }
  fmt::print("  arena {:.1f} MB, scratch {:.1f} MB a worker\n",
             static_cast<double>(executor.arena_bytes(kRows)) / 1e6,
             static_cast<double>(executor.scratch_bytes()) / 1e6);
}

}  // namespace
}  // namespace ooc

int main(int argc, char** argv) {
  using namespace ooc;
  const Sage sage;
  Inputs inputs;
  inputs.add(sage, sage.x, 0.5f);
  inputs.add(sage, sage.inverse0, 0.04f);
  inputs.add(sage, sage.inverse1, 0.1f);
  inputs.add(sage, sage.labels, 3);
  inputs.add(sage, sage.splits, std::uint8_t{1});
  const std::vector<BatchEdge> edges = random_edges();
  std::vector<int> all{1, 2};
  if (argc > 1) all = {std::atoi(argv[1])};
  for (const int workers : all) {
    const tbb::global_control most(tbb::global_control::max_allowed_parallelism,
                                   static_cast<std::size_t>(workers));
    tbb::task_arena(workers).execute([&] { run(sage, edges, inputs.rows); });
  }
  return 0;
}
