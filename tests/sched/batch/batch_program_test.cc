#include "sched/batch/batch_program.h"

#include "tests/sched/batch/batch_harness.h"

namespace ooc::test {
namespace {

constexpr std::int64_t kCols = 33;

TEST_CASE("batch program: steps that copy rows in memory are left out, others stay") {
  ProgramMaker make;
  const ValueId x = make.input("x", kCols, 1), made = make.vertex(kCols, 1);
  const ValueId made_twice = make.vertex(kCols, 1), a = make.vertex(kCols, 1);
  const ValueId in_stage = make.vertex(kCols, 1), first = make.vertex(kCols, 0);
  const ValueId last = make.vertex(kCols, 0);
  make.stage("rows").steps = {{"copy", {x}, {made}, {}},
                              {"copy", {made}, {made_twice}, {}},
                              {"relu", {made_twice}, {in_stage}, {}},
                              {"copy", {in_stage}, {a}, {}}};  // of what isn't in memory
  make.stage("first").steps = {{"first_rows", {a}, {first}, {}}, {"relu", {first}, {last}, {}}};
  make.program.outputs = {last, made_twice};
  const BatchProgram lowered = lower_to_batches(make.program);
  const auto rows_of = [&](ValueId id) { return lowered.rows_of[static_cast<std::size_t>(id)]; };
  CHECK(rows_of(made) == x);
  CHECK(rows_of(made_twice) == x);
  CHECK(rows_of(a) == a);
  CHECK(rows_of(first) == a);
  CHECK((lowered.step_level == std::vector<int>{1, 0}));
  CHECK(lowered.program.stages[0].steps.size() == 2);
  REQUIRE(lowered.program.stages[1].steps.size() == 1);
  CHECK(lowered.program.stages[1].steps[0].inputs[0] == a);
  CHECK((lowered.program.outputs == std::vector<ValueId>{last, x}));
}

// a = relu(x); of its first rows, those of level 0, then as if they had those of level 2.
struct Extended {
  ProgramMaker make;
  ValueId x, a, first, extended, further, sum, far;

  Extended() {
    x = make.input("x", kCols, 2);
    a = make.vertex(kCols, 2);
    first = make.vertex(kCols, 0);
    extended = make.vertex(kCols, 1);
    further = make.vertex(kCols, 2);
    sum = make.vertex(kCols, 2);
    far = make.vertex(kCols, 1);
    make.stage("a").steps = {{"relu", {x}, {a}, {}}};
    make.stage("first").steps = {{"first_rows", {a}, {first}, {}}};
    make.stage("extended").steps = {{"extend_rows", {first}, {extended}, {}}};
    make.stage("further").steps = {{"extend_rows", {extended}, {further}, {}},
                                   {"add", {a, further}, {sum}, {}}};
    make.sum(Direction::kIn, further, far);
    make.program.outputs = {extended, sum, far};
  }
};

TEST_CASE("batch program: rows that are extended have memory of their own, zeros at its end") {
  const Extended program;
  const BatchProgram lowered = lower_to_batches(program.make.program);
  const auto at = [](ValueId id) { return static_cast<std::size_t>(id); };
  CHECK(lowered.rows_of[at(program.first)] == program.first);
  CHECK(lowered.rows_of[at(program.further)] == program.first);
  CHECK(lowered.memory_level[at(program.first)] == 2);

  const RandomBatch batch = random_batch({300, 3000, 7000}, 3, 1);
  const Table rows = random_table(7000, kCols, 2);
  BatchGraph graph;
  graph.build(batch.from());
  BatchData data;
  data.input<float>(program.make.program, "x", rows);
  const auto backend = make_cpu_backend();
  BatchExecutor executor(*backend, program.make.program);
  Table a = rows;
  for (double& value : a.values) value = std::max(value, 0.0);
  const Table first = with_rows(with_rows(a, 300), 7000);
  Table sum = a;
  for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += first.values[i];
  for (int run = 0; run < 2; ++run) {
    with_workers(2, [&] { executor.run(graph, data.inputs, {}); });
    check_close(table_of<float>(executor.output(program.extended)), with_rows(first, 3000), 0);
    check_close(table_of<float>(executor.output(program.sum)), sum, 0);
    check_close(table_of<float>(executor.output(program.far)),
                summed(batch, Direction::kIn, 1, first));
  }
}

}  // namespace
}  // namespace ooc::test
