#include "sched/batch/batch_executor.h"

#include "tests/sched/batch/batch_harness.h"

namespace ooc::test {
namespace {

constexpr double kLabels = 64;  // as the batch counts them

// Two layers of SAGE with sums, the second with loops and weights, a loss and its gradients:
//   h = relu(S1 x W1 + x W2), logits = S0 h W3 + h W4
struct Sage {
  static constexpr std::int64_t kIn = 40, kHidden = 72, kClasses = 5;

  ProgramMaker make;
  ValueId x, labels, splits, w1, w2, w3, w4;
  ValueId h, logits, loss, d_pre;
  std::vector<ValueId> gradients;  // of w1 to w4

  Sage() {
    x = make.input("x", kIn, 2);
    labels = make.input("labels", 1, 0, DType::kI32);
    splits = make.input("splits", 1, 0, DType::kU8);
    w1 = make.parameter(kIn, kHidden);
    w2 = make.parameter(kIn, kHidden);
    w3 = make.parameter(kHidden, kClasses);
    w4 = make.parameter(kHidden, kClasses);
    const ValueId made = make.vertex(kIn, 2), x1 = make.vertex(kIn, 1);
    const ValueId s1 = make.vertex(kIn, 1), by_w1 = make.vertex(kHidden, 1);
    const ValueId by_w2 = make.vertex(kHidden, 1), pre = make.vertex(kHidden, 1);
    h = make.vertex(kHidden, 1);
    make.stage("x").steps = {{"copy", {x}, {made}, {}}};
    make.sum(Direction::kIn, made, s1);
    make.program.stages.back().steps = {{"matmul", {s1, w1}, {by_w1}, {}},
                                        {"copy", {x}, {x1}, {}},
                                        {"matmul", {x1, w2}, {by_w2}, {}},
                                        {"add", {by_w1, by_w2}, {pre}, {}},
                                        {"relu", {pre}, {h}, {}}};
    backward(s1, x1, output());
    make.program.outputs = {h, logits, d_pre};
  }

  struct Output {
    ValueId s0, h0, d_logits;
  };
  Output output() {
    const Output out{make.vertex(kHidden, 0), make.vertex(kHidden, 0), make.vertex(kClasses, 0)};
    const ValueId by_w3 = make.vertex(kClasses, 0), by_w4 = make.vertex(kClasses, 0);
    logits = make.vertex(kClasses, 0);
    loss = make.reduction(3, 3, DType::kF64);
    make.sum(Direction::kIn, h, out.s0, true, true);
    make.program.stages.back().steps = {
        {"first_rows", {h}, {out.h0}, {}},
        {"matmul", {out.s0, w3}, {by_w3}, {}},
        {"matmul", {out.h0, w4}, {by_w4}, {}},
        {"add", {by_w3, by_w4}, {logits}, {}},
        {"softmax_cross_entropy", {logits, labels, splits}, {loss}, {}},
        {"softmax_cross_entropy_gradient", {logits, labels, splits}, {out.d_logits}, {}}};
    return out;
  }
  void backward(ValueId s1, ValueId x1, const Output& out) {
    for (const auto& [rows, cols] :
         {std::pair{kIn, kHidden}, {kIn, kHidden}, {kHidden, kClasses}, {kHidden, kClasses}}) {
      gradients.push_back(make.reduction(rows, cols));
    }
    const ValueId d_s0 = make.vertex(kHidden, 0), d_h0 = make.vertex(kHidden, 0);
    const ValueId spread = make.vertex(kHidden, 1), extended = make.vertex(kHidden, 1);
    const ValueId d_h = make.vertex(kHidden, 1);
    d_pre = make.vertex(kHidden, 1);
    Attributes transpose;
    transpose.transpose = true;
    make.stage("d_logits").steps = {{"matmul_reduce", {out.s0, out.d_logits}, {gradients[2]}, {}},
                                    {"matmul_reduce", {out.h0, out.d_logits}, {gradients[3]}, {}},
                                    {"matmul", {out.d_logits, w3}, {d_s0}, transpose},
                                    {"matmul", {out.d_logits, w4}, {d_h0}, transpose}};
    make.sum(Direction::kOut, d_s0, spread, true, true);
    make.program.stages.back().steps = {{"extend_rows", {d_h0}, {extended}, {}},
                                        {"add", {spread, extended}, {d_h}, {}},
                                        {"relu_gradient", {d_h, h}, {d_pre}, {}},
                                        {"matmul_reduce", {s1, d_pre}, {gradients[0]}, {}},
                                        {"matmul_reduce", {x1, d_pre}, {gradients[1]}, {}}};
  }
};

struct SageData {
  RandomBatch batch;
  Table x, labels, splits;
  BatchData memory;
  BatchGraph graph;

  SageData(const Sage& sage, std::vector<std::int64_t> level_rows, std::uint64_t seed)
      : batch(random_batch(std::move(level_rows), 4, seed, {.weights = true}, true)),
        x(random_table(batch.level_rows.back(), Sage::kIn, seed + 1)),
        labels(batch.level_rows[0], 1),
        splits(batch.level_rows[0], 1) {
    for (std::int64_t row = 0; row < labels.rows; ++row) {
      labels.at(row, 0) = static_cast<double>(row % Sage::kClasses);
      splits.at(row, 0) = row % 7 == 0 ? 2 : 1;
    }
    memory.input<float>(sage.make.program, "x", x);
    memory.input<std::int32_t>(sage.make.program, "labels", labels);
    memory.input<std::uint8_t>(sage.make.program, "splits", splits);
    graph.build(batch.from());
  }
};

struct Weights {
  Table w1 = random_table(Sage::kIn, Sage::kHidden, 101);
  Table w2 = random_table(Sage::kIn, Sage::kHidden, 102);
  Table w3 = random_table(Sage::kHidden, Sage::kClasses, 103);
  Table w4 = random_table(Sage::kHidden, Sage::kClasses, 104);
  BatchData memory;

  void bind(const Sage& sage, BatchExecutor& executor) {
    for (Table* table : {&w3, &w4}) {
      for (double& value : table->values) value /= 64;
    }
    executor.bind_parameter(sage.w1, memory.parameter(w1));
    executor.bind_parameter(sage.w2, memory.parameter(w2));
    executor.bind_parameter(sage.w3, memory.parameter(w3));
    executor.bind_parameter(sage.w4, memory.parameter(w4));
  }
};

struct SageResult {
  Table h, logits, loss, d_pre;
  std::vector<Table> gradients;

  bool operator==(const SageResult& other) const {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].values != other.gradients[i].values) return false;
    }
    return h.values == other.h.values && logits.values == other.logits.values &&
           loss.values == other.loss.values && d_pre.values == other.d_pre.values;
  }
};

SageResult run(const Sage& sage, BatchExecutor& executor, SageData& data, int workers = 2) {
  with_workers(workers,
               [&] { executor.run(data.graph, data.memory.inputs, {}, {.labels = kLabels}); });
  SageResult result{table_of<float>(executor.output(sage.h)),
                    table_of<float>(executor.output(sage.logits)),
                    sum_of<double>(executor, sage.make.program, sage.loss),
                    table_of<float>(executor.output(sage.d_pre)),
                    {}};
  for (const ValueId id : sage.gradients) {
    result.gradients.push_back(sum_of<float>(executor, sage.make.program, id));
  }
  return result;
}

// The same in double.
SageResult reference(const Weights& w, const SageData& data) {
  const RandomBatch& batch = data.batch;
  SageResult out;
  const Table s1 = summed(batch, Direction::kIn, 1, data.x);
  const Table x1 = with_rows(data.x, batch.level_rows[1]);
  out.h = product(s1, w.w1);
  const Table own = product(x1, w.w2);
  for (std::size_t i = 0; i < own.values.size(); ++i) {
    out.h.values[i] = std::max(0.0, out.h.values[i] + own.values[i]);
  }
  const Table s0 = summed(batch, Direction::kIn, 0, out.h, true, true);
  const Table h0 = with_rows(out.h, batch.level_rows[0]);
  out.logits = product(s0, w.w3);
  const Table by_w4 = product(h0, w.w4);
  for (std::size_t i = 0; i < by_w4.values.size(); ++i) out.logits.values[i] += by_w4.values[i];
  Table d_logits(batch.level_rows[0], Sage::kClasses);
  out.loss = Table(3, 3);
  for (std::int64_t row = 0; row < d_logits.rows; ++row) {
    double sum = 0;
    std::int64_t best = 0;
    for (std::int64_t c = 0; c < Sage::kClasses; ++c) {
      sum += std::exp(out.logits.at(row, c));
      if (out.logits.at(row, c) > out.logits.at(row, best)) best = c;
    }
    const auto label = static_cast<std::int64_t>(data.labels.at(row, 0));
    const auto split = static_cast<std::int64_t>(data.splits.at(row, 0));
    out.loss.at(split - 1, 0) += std::log(sum) - out.logits.at(row, label);
    out.loss.at(split - 1, 1) += best == label ? 1 : 0;
    out.loss.at(split - 1, 2) += 1;
    for (std::int64_t c = 0; c < Sage::kClasses && split == 1; ++c) {
      d_logits.at(row, c) =
          (std::exp(out.logits.at(row, c)) / sum - (c == label ? 1 : 0)) / kLabels;
    }
  }
  out.d_pre = summed(batch, Direction::kOut, 0, product(d_logits, transposed(w.w3)), true, true);
  const Table d_h0 = product(d_logits, transposed(w.w4));
  for (std::size_t i = 0; i < d_h0.values.size(); ++i) out.d_pre.values[i] += d_h0.values[i];
  for (std::size_t i = 0; i < out.h.values.size(); ++i) {
    if (out.h.values[i] <= 0) out.d_pre.values[i] = 0;
  }
  out.gradients = {product(transposed(s1), out.d_pre), product(transposed(x1), out.d_pre),
                   product(transposed(s0), d_logits), product(transposed(h0), d_logits)};
  return out;
}

void check_close(const SageResult& result, const SageResult& expected) {
  check_close(result.h, expected.h);
  check_close(result.logits, expected.logits);
  check_close(result.d_pre, expected.d_pre);
  check_close(result.loss, expected.loss, 1e-4);
  for (std::size_t i = 0; i < 4; ++i) {
    check_close(result.gradients[i], expected.gradients[i]);
  }
}

TEST_CASE("batch executor: two layers, a loss and their gradients are what they are in double") {
  const Sage sage;
  const auto backend = make_cpu_backend();
  BatchExecutor executor(*backend, sage.make.program);
  Weights weights;
  weights.bind(sage, executor);
  for (const std::vector<std::int64_t>& level_rows :
       {std::vector<std::int64_t>{60, 300, 900}, {700, 5000, 9000}, {64, 3000, 70000}}) {
    SageData data(sage, level_rows, 3);
    check_close(run(sage, executor, data), reference(weights, data));
  }
}

TEST_CASE("batch executor: bits depend neither on workers nor on the batch before") {
  const Sage sage;
  const auto backend = make_cpu_backend();
  Weights weights;
  BatchExecutor executor(*backend, sage.make.program);
  weights.bind(sage, executor);
  SageData large(sage, {2000, 40000, 66000}, 5), small(sage, {90, 4000, 6000}, 6);
  const SageResult first = run(sage, executor, large, 1);
  const SageResult second = run(sage, executor, small, 3);
  CHECK((run(sage, executor, large, 3) == first));
  for (const bool of_large : {true, false}) {
    BatchExecutor fresh(*backend, sage.make.program);
    Weights same;
    same.bind(sage, fresh);
    CHECK((run(sage, fresh, of_large ? large : small, 2) == (of_large ? first : second)));
  }
}

TEST_CASE("batch executor: inputs that a program copies are read where they lie") {
  ProgramMaker make;
  const ValueId x = make.input("x", 40, 1), made = make.vertex(40, 1), head = make.vertex(40, 0);
  const ValueId sum = make.vertex(40, 0);
  make.stage("x").steps = {{"copy", {x}, {made}, {}}};
  make.sum(Direction::kIn, made, sum);
  make.stage("head").steps = {{"first_rows", {made}, {head}, {}}};
  make.program.outputs = {made, head, sum};
  const auto backend = make_cpu_backend();
  BatchExecutor executor(*backend, make.program);
  const RandomBatch batch = random_batch({3000, 5000}, 3, 1);
  BatchGraph graph;
  graph.build(batch.from());
  BatchData data;
  const Table rows = random_table(5000, 40, 2);
  data.input<float>(make.program, "x", rows);
  executor.run(graph, data.inputs, {});
  CHECK(executor.output(made).slices.first == data.inputs["x"].first);
  CHECK(executor.output(head).slices.last == data.inputs["x"].last);
  CHECK(executor.output(head).rows == 3000);
  check_close(table_of<float>(executor.output(made)), rows, 0);
  check_close(table_of<float>(executor.output(sum)), summed(batch, Direction::kIn, 0, rows));
  // The sums' rows alone.
  CHECK(executor.arena_bytes(batch.level_rows) < 3000 * 40 * 4 + 8192);
}

TEST_CASE("batch executor: memory grows with the rows of each level") {
  const Sage sage;
  const auto backend = make_cpu_backend();
  BatchExecutor executor(*backend, sage.make.program);
  SplitMix random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::int64_t> rows{static_cast<std::int64_t>(random() % 3000 + 1)};
    for (int level = 1; level < 3; ++level) {
      rows.push_back(rows.back() + static_cast<std::int64_t>(random() % 50000));
    }
    const std::int64_t bytes = executor.arena_bytes(rows);
    for (std::size_t level = 0; level < 3; ++level) {
      std::vector<std::int64_t> more = rows;
      for (std::size_t j = level; j < 3; ++j) more[j] += static_cast<std::int64_t>(random() % 600);
      CHECK(executor.arena_bytes(more) >= bytes);
    }
  }
  CHECK(executor.scratch_bytes() > 0);
  CHECK(executor.reduction_bytes() >= 4 * 2 * Sage::kIn * Sage::kHidden);
}

}  // namespace
}  // namespace ooc::test
