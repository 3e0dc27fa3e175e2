#include "engine/lower/stages.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "engine/graph/gradients.h"
#include "engine/model/build.h"

using namespace ooc;

namespace {

std::vector<std::string> ops_of(const Stage& stage) {
  std::vector<std::string> names;
  for (const RowStep& step : stage.steps) names.push_back(step.op);
  return names;
}

}  // namespace

TEST_CASE("stages: a two-layer GCN is five stages, the input's dropout computed again") {
  ModelOptions options;
  options.input_dropout = 0.5;
  Model model = build_model(options, {1000, 50, 7, 100}, Mode::kTrain, DType::kF32);
  const auto gradients = add_gradients(model.graph, {model.loss, -1});
  std::vector<TensorId> roots{model.loss};
  for (const ModelParameter& parameter : model.parameters) {
    roots.push_back(gradients.at(parameter.tensor).front());
  }
  const StagedGraph staged = make_stages(model.graph, "test", roots);
  const std::vector<Stage>& stages = staged.program.stages;
  REQUIRE(stages.size() == 5);
  CHECK_FALSE(stages[0].propagation);
  CHECK(ops_of(stages[0]) ==
        std::vector<std::string>{"dropout", "degree_factor", "matmul", "scale_rows"});
  for (const int i : {1, 2}) CHECK(stages[i].propagation->direction == Direction::kIn);
  for (const int i : {3, 4}) CHECK(stages[i].propagation->direction == Direction::kOut);
  // The first layer's weight gradient needs the dropped-out features: not kept, computed again.
  const auto last = ops_of(stages[4]);
  CHECK(std::count(last.begin(), last.end(), "dropout") == 1);
  CHECK(last.back() == "matmul_reduce");
  // Every step's inputs are from outside, from an earlier stage, or from an earlier step.
  std::vector<bool> made(staged.program.values.size());
  for (std::size_t id = 0; id < made.size(); ++id) {
    const ValueKind kind = staged.program.values[id].kind;
    made[id] = kind == ValueKind::kInput || kind == ValueKind::kParameter;
  }
  for (const Stage& stage : stages) {
    if (stage.propagation) {
      for (const EdgeInput& input : stage.propagation->inputs) {
        CHECK(made[static_cast<std::size_t>(input.vertex)]);
      }
      for (const EdgeFold& fold : stage.propagation->folds) {
        made[static_cast<std::size_t>(fold.accumulators[0])] = true;
      }
    }
    for (const RowStep& step : stage.steps) {
      for (const ValueId id : step.inputs) CHECK(made[static_cast<std::size_t>(id)]);
      for (const ValueId id : step.outputs) made[static_cast<std::size_t>(id)] = true;
    }
  }
}

TEST_CASE("stages: a reduction is read a stage later at the earliest") {
  ModelOptions options;
  options.norm = Norm::kBatch;
  Model model = build_model(options, {1000, 50, 7, 100}, Mode::kTrain, DType::kF32);
  const StagedGraph staged = make_stages(model.graph, "test", {model.loss});
  int summed = -1, read = -1;
  for (int i = 0; i < static_cast<int>(staged.program.stages.size()); ++i) {
    const auto ops = ops_of(staged.program.stages[static_cast<std::size_t>(i)]);
    if (std::count(ops.begin(), ops.end(), "batch_norm_sums") > 0) summed = i;
    if (std::count(ops.begin(), ops.end(), "batch_norm") > 0 && read < 0) read = i;
  }
  CHECK(summed == 1);
  CHECK(read == 2);
}

TEST_CASE(
    "stages: what nothing asks for is dropped, and never computed where only others need it") {
  TensorGraph graph(DType::kF32);
  const TensorId x = graph.input("x", 8, DType::kF32);
  const TensorId kept = graph.apply("relu", {x});
  graph.apply("relu", {kept});                      // nobody reads it
  const TensorId again = graph.apply("relu", {x});  // read after the propagation only
  const TensorId sum = graph.gather("sum", {graph.source(kept)}, Direction::kIn);
  const TensorId out = graph.apply("add", {sum, again});
  const StagedGraph staged = make_stages(graph, "test", {out});
  REQUIRE(staged.program.stages.size() == 2);
  CHECK(ops_of(staged.program.stages[0]) == std::vector<std::string>{"relu"});
  CHECK(ops_of(staged.program.stages[1]) == std::vector<std::string>{"relu", "add"});
}

TEST_CASE("stages: behind a dropout, backward keeps bits, no relu's output, no random numbers") {
  TensorGraph graph(DType::kF32);
  const TensorId ids = graph.input("ids", 1, DType::kI64);
  const TensorId x = graph.input("x", 8, DType::kF32), w = graph.parameter("w", 8, 16);
  const TensorId y = graph.apply("relu", {graph.apply("matmul", {x, w})});
  Attributes half;
  half.value = 0.5;
  half.key = 3;
  const TensorId left = graph.apply("dropout", {y, ids}, half);
  const TensorId sum = graph.gather("sum", {graph.source(left)}, Direction::kIn);
  const TensorId loss = graph.apply(
      "softmax_cross_entropy",
      {sum, graph.input("labels", 1, DType::kI32), graph.input("splits", 1, DType::kU8)});
  const Gradients gradients = add_gradients(graph, {loss, -1});
  const StagedGraph staged = make_stages(graph, "test", {gradients.at(w).front()});
  const std::vector<Stage>& stages = staged.program.stages;
  REQUIRE(stages.size() == 3);
  CHECK(ops_of(stages[0]) ==
        std::vector<std::string>{"matmul", "relu", "dropout", "positive_bits"});
  CHECK(stages[0].steps[3].inputs[0] == staged.value(left));
  const ValueId bits = stages[0].steps[3].outputs[0];
  CHECK(staged.program.values[static_cast<std::size_t>(bits)].dtype == DType::kI32);
  CHECK(ops_of(stages[2]) == std::vector<std::string>{"affine", "keep_bits", "matmul_reduce"});
  CHECK(stages[2].steps[1].inputs[1] == bits);
}

TEST_CASE("stages: what is computed again row by row isn't what is narrow beside its inputs") {
  for (const std::int64_t cols : {2, 4}) {  // a word of bits is 4 bytes
    TensorGraph graph(DType::kF32);
    const TensorId x = graph.input("x", cols, DType::kF32), w = graph.parameter("w", cols, cols);
    const TensorId y = graph.apply("relu", {graph.apply("matmul", {x, w})});
    const TensorId bits = graph.apply("positive_bits", {y});
    const TensorId sent = graph.apply("keep_bits", {y, bits});
    const TensorId sum = graph.gather("sum", {graph.source(sent)}, Direction::kIn);
    const TensorId left = graph.apply("keep_bits", {sum, bits});
    const TensorId out = graph.apply("add", {left, x});  // x is read again anyway
    const StagedGraph staged =
        make_stages(graph, "test", {out}, {.recompute = Recompute::kRowWise});
    const auto second = ops_of(staged.program.stages[1]);
    CHECK(std::count(second.begin(), second.end(), "positive_bits") == (cols == 4 ? 0 : 1));
  }
}

TEST_CASE("stages: what would be computed again from no less than it takes itself is kept") {
  for (const bool read_anyway : {false, true}) {
    TensorGraph graph(DType::kF32);
    const TensorId x = graph.input("x", 8, DType::kF32), w = graph.parameter("w", 8, 4);
    const TensorId y = graph.apply("matmul", {x, w});  // written and read: as much as x read
    const TensorId sum =
        graph.gather("sum", {graph.source(graph.apply("relu", {y}))}, Direction::kIn);
    const TensorId with_y = graph.apply("add", {sum, y});
    const TensorId back = graph.apply("matmul", {with_y, graph.parameter("back", 4, 8)});
    const TensorId out = read_anyway ? graph.apply("add", {back, x}) : back;
    const StagedGraph staged =
        make_stages(graph, "test", {out}, {.recompute = Recompute::kRowWise});
    REQUIRE(staged.program.stages.size() == 2);
    const auto second = ops_of(staged.program.stages[1]);
    CHECK(std::count(second.begin(), second.end(), "matmul") == (read_anyway ? 2 : 1));
  }
}

TEST_CASE("stages: long chains of what is read twice take no time") {
  TensorGraph graph(DType::kF32);
  TensorId x =
      graph.apply("matmul", {graph.input("x", 8, DType::kF32), graph.parameter("w", 8, 8)});
  for (int i = 0; i < 60; ++i) x = graph.apply("add", {graph.apply("mul", {x, x}), x});
  const TensorId sum = graph.gather("sum", {graph.source(x)}, Direction::kIn);
  const StagedGraph staged = make_stages(graph, "test", {graph.apply("add", {sum, x})});
  CHECK(staged.program.stages.size() == 2);
}

TEST_CASE("stages: an operator sinks into the stage that reads it where less then moves") {
  // Of h, which edges read, products that only the next stage reads.
  const auto stages_with = [](std::int64_t cols) {
    TensorGraph graph(DType::kF32);
    const TensorId h =
        graph.apply("matmul", {graph.input("x", 8, DType::kF32), graph.parameter("w", 8, 8)});
    const TensorId own = graph.apply("matmul", {h, graph.parameter("own", 8, cols)});
    const TensorId sum = graph.gather("sum", {graph.source(h)}, Direction::kIn);
    const TensorId near = graph.apply("matmul", {sum, graph.parameter("near", 8, cols)});
    const TensorId bias = graph.apply("bias", {own, graph.parameter("b", 1, cols)});
    const TensorId out = graph.apply("add", {bias, near});
    return make_stages(graph, "test", {out}).program.stages;
  };
  // As wide as h, and wider, they sink: h is kept anyway.
  for (const std::int64_t cols : {8, 32}) {
    const std::vector<Stage> stages = stages_with(cols);
    REQUIRE(stages.size() == 2);
    CHECK(ops_of(stages[0]) == std::vector<std::string>{"matmul"});
    CHECK(ops_of(stages[1]) == std::vector<std::string>{"matmul", "matmul", "bias", "add"});
  }
  // Narrow ones don't: h needn't be read again.
  const std::vector<Stage> stages = stages_with(2);
  REQUIRE(stages.size() == 2);
  CHECK(ops_of(stages[0]) == std::vector<std::string>{"matmul", "matmul", "bias"});
  CHECK(ops_of(stages[1]) == std::vector<std::string>{"matmul", "add"});
}

TEST_CASE("stages: a weight's gradient sinks into the stage that reads its rows anyway") {
  // Of h, which neighbours and the vertex itself read, each through weights of their own. After
  // the loss only the gradient of `near` reads h in the stage of the reverse edges.
  const auto stages_for = [](bool near_wanted) {
    TensorGraph graph(DType::kF32);
    const TensorId w = graph.parameter("w", 8, 16), own = graph.parameter("own", 16, 4),
                   near = graph.parameter("near", 16, 4);
    const TensorId h = graph.apply("matmul", {graph.input("x", 8, DType::kF32), w});
    const TensorId sum =
        graph.gather("sum", {graph.source(graph.apply("matmul", {h, near}))}, Direction::kIn);
    const TensorId loss =
        graph.apply("softmax_cross_entropy",
                    {graph.apply("add", {graph.apply("matmul", {h, own}), sum}),
                     graph.input("labels", 1, DType::kI32), graph.input("splits", 1, DType::kU8)});
    const Gradients gradients = add_gradients(graph, {loss, -1});
    std::vector<TensorId> roots{gradients.at(w).front(), gradients.at(own).front()};
    if (near_wanted) roots.push_back(gradients.at(near).front());
    return make_stages(graph, "test", roots).program.stages;
  };
  for (const bool near_wanted : {true, false}) {
    const std::vector<Stage> stages = stages_for(near_wanted);
    REQUIRE(stages.size() == 3);
    const auto reductions = [&](int stage) {
      const auto ops = ops_of(stages[static_cast<std::size_t>(stage)]);
      return std::count(ops.begin(), ops.end(), "matmul_reduce");
    };
    CHECK(reductions(1) == (near_wanted ? 0 : 1));
    CHECK(reductions(2) == (near_wanted ? 3 : 1));
  }
}

TEST_CASE("stages: no operator sinks so far that edges would have to wait") {
  TensorGraph graph(DType::kF32);
  const TensorId x = graph.input("x", 8, DType::kF32);
  const TensorId wide = graph.apply("matmul", {x, graph.parameter("w", 8, 64)});
  const TensorId sum =
      graph.gather("sum", {graph.source(graph.apply("relu", {x}))}, Direction::kIn);
  const TensorId far = graph.gather("sum", {graph.source(wide)}, Direction::kIn);
  const TensorId both = graph.apply("concat", {sum, far});
  const StagedGraph staged = make_stages(graph, "test", {both});
  REQUIRE(staged.program.stages.size() == 2);
  CHECK(staged.program.stages[1].propagation->folds.size() == 2);
}

TEST_CASE("stages: rows of another level are read from memory, a stage later") {
  TensorGraph graph(DType::kF32);
  Tensor leaf{"x", {Space::kVertex, 0, 8, DType::kF32}};
  leaf.shape.level = 2;
  const TensorId x = graph.add_like(leaf);
  const TensorId h = graph.apply("matmul", {x, graph.parameter("w", 8, 8)});
  const TensorId sum = graph.gather("sum", {graph.source(h)}, Direction::kIn);
  const TensorId both = graph.apply("add", {sum, graph.first_rows(h, 1)});
  const TensorId seeds = graph.apply("relu", {graph.first_rows(both, 0)});
  const TensorId far = graph.apply("exp", {graph.extend_rows(seeds, 1)});
  const StagedGraph staged = make_stages(graph, "test", {far});
  const std::vector<Stage>& stages = staged.program.stages;
  REQUIRE(stages.size() == 4);
  using Ops = std::vector<std::string>;
  CHECK(ops_of(stages[0]) == Ops{"matmul"});
  CHECK(ops_of(stages[1]) == Ops{"first_rows", "add"});
  CHECK(ops_of(stages[2]) == Ops{"first_rows", "relu"});
  CHECK(ops_of(stages[3]) == Ops{"extend_rows", "exp"});
  const auto level = [&](TensorId id) {
    return staged.program.values[static_cast<std::size_t>(staged.value(id))].level;
  };
  CHECK(level(x) == 2);
  CHECK(level(h) == 2);
  CHECK(level(sum) == 1);
  CHECK(level(seeds) == 0);
  CHECK(level(far) == 1);
}

TEST_CASE("stages: propagations and rows of other levels have stages of their own") {
  TensorGraph graph(DType::kF32);
  std::vector<TensorId> sums;
  for (const int level : {1, 2, 1}) {
    Tensor leaf{"x" + std::to_string(sums.size()), {Space::kVertex, 0, 8, DType::kF32}};
    leaf.shape.level = level;
    const TensorId x = graph.apply("exp", {graph.add_like(leaf)});
    sums.push_back(graph.gather("sum", {graph.source(x)}, Direction::kIn));
  }
  const StagedGraph staged = make_stages(graph, "test", sums);
  const std::vector<Stage>& stages = staged.program.stages;
  REQUIRE(stages.size() == 4);  // rows of level 1, edges into 0, rows of level 2, edges into 1
  for (const std::size_t rows : {0, 2}) CHECK_FALSE(stages[rows].propagation);
  CHECK(ops_of(stages[0]) == std::vector<std::string>{"exp", "exp"});
  CHECK(ops_of(stages[2]) == std::vector<std::string>{"exp"});
  CHECK(stages[1].propagation->folds.size() == 2);
  CHECK(stages[3].propagation->folds.size() == 1);
}
