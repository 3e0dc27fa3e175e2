#include "engine/rewrite/rewrites.h"

#include <algorithm>
#include <cmath>

#include "engine/graph/edge_operators.h"
#include "engine/graph/row_operators.h"
#include "engine/model/rewrites.h"
#include "engine/train/trainer.h"
#include "storage/base/errors.h"
#include "tests/engine/graph_harness.h"

using namespace ooc;
using Catch::Matchers::Contains;
using test::GraphHarness;
using test::TinyDataset;

namespace {

TinyDataset directed_graph() {
  TinyDataset spec;
  spec.vertices = 53;
  spec.edges = test::random_edges(45, 160, 3);
  for (int i = 0; i < 2; ++i) spec.edges.push_back({7, 7});
  return spec;
}

std::int64_t count(const TensorGraph& graph, const std::string& op, Space space) {
  return std::count_if(
      graph.operations().begin(), graph.operations().end(), [&](const Operation& operation) {
        return operation.def->name == op && graph.shape(operation.output).space == space;
      });
}

// The widths of all sums over edges, in order.
std::vector<std::int64_t> gathered_cols(const TensorGraph& graph) {
  std::vector<std::int64_t> cols;
  for (const Operation& operation : graph.operations()) {
    if (operation.def->name != "gather_sum") continue;
    cols.push_back(graph.shape(operation.output).cols);
  }
  return cols;
}

// Both graphs give the same for a tensor of the old one.
void check_same(GraphHarness& harness, const TensorGraph& old, const Rewritten& rewritten,
                TensorId root) {
  const auto before = harness.run(old, {root}).tensors.at(root);
  const auto after =
      harness.run(rewritten.graph, {rewritten.at(root)}).tensors.at(rewritten.at(root));
  REQUIRE(before.size() == after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    INFO("element " << i);
    REQUIRE(std::abs(before[i] - after[i]) <= 1e-11 * (1 + std::abs(before[i])));
  }
}

// D (A + L) D X W: what a GCN propagates that has its loops after the gather.
TensorId convolution(TensorGraph& graph, TensorId x, std::int64_t out) {
  const TensorId w = graph.parameter("w", graph.shape(x).cols, out);
  const TensorId factor = degree_factor(graph, DegreeFactor::kOut);
  const TensorId edges = graph.apply(
      "scale_rows", {graph.apply("matmul", {graph.source(x), w}), graph.source(factor)});
  const TensorId own = graph.apply("scale_rows", {graph.apply("matmul", {x, w}), factor});
  const TensorId loop =
      graph.apply("scale_rows", {own, degree_factor(graph, DegreeFactor::kInverseIn)});
  const TensorId sum = graph.apply("add", {gather_sum(graph, edges), loop});
  return graph.apply("scale_rows", {sum, degree_factor(graph, DegreeFactor::kIn)});
}

}  // namespace

TEST_CASE("rewrites: what one end of an edge feeds alone moves to the vertices") {
  GraphHarness harness(directed_graph());
  harness.add_input("x", 9);
  TensorGraph graph(DType::kF64);
  const TensorId x = graph.input("x", 9, DType::kF64);
  const TensorId s = graph.apply("matmul", {graph.source(x), graph.parameter("ws", 9, 9)});
  const TensorId t = graph.apply(
      "relu", {graph.apply("matmul", {graph.destination(x), graph.parameter("wt", 9, 9)})});
  const TensorId gate = graph.apply("sigmoid", {graph.apply("add", {s, t})});
  const TensorId out = gather_sum(graph, graph.apply("mul", {gate, graph.source(x)}));
  const Rewritten moved = move_operators(graph);
  CHECK(count(graph, "matmul", Space::kEdge) == 2);
  CHECK(count(moved.graph, "matmul", Space::kEdge) == 0);
  CHECK(count(moved.graph, "matmul", Space::kVertex) == 2);
  CHECK(count(moved.graph, "relu", Space::kVertex) == 1);
  CHECK(count(moved.graph, "add", Space::kEdge) == 1);  // both ends feed it
  CHECK(count(moved.graph, "sigmoid", Space::kEdge) == 1);
  check_same(harness, graph, moved, out);
}

TEST_CASE("rewrites: equal operators on equal operands are one, others stay apart") {
  TensorGraph graph(DType::kF64);
  const TensorId x = graph.input("x", 9, DType::kF64);
  const TensorId ids = graph.input("ids", 1, DType::kI64);
  const TensorId a = graph.apply("relu", {x}), b = graph.apply("relu", {x});
  const TensorId c = graph.apply("dropout", {x, ids}, {.value = 0.5, .key = 1});
  const TensorId d = graph.apply("dropout", {x, ids}, {.value = 0.5, .key = 2});
  const TensorId e = gather_sum(graph, graph.source(a)), f = gather_sum(graph, graph.source(b));
  const TensorId g = graph.gather("sum", {graph.source(a)}, Direction::kOut);
  const Rewritten merged = merge_common(graph);
  CHECK(merged.at(a) == merged.at(b));
  CHECK(merged.at(e) == merged.at(f));
  CHECK(merged.at(c) != merged.at(d));
  CHECK(merged.at(e) != merged.at(g));
}

TEST_CASE("rewrites: a matmul goes where fewer columns are propagated, and gives the same") {
  GraphHarness harness(directed_graph());
  harness.add_input("x", 12);
  struct Case {
    std::int64_t out;
    bool wants_gradient;
    bool hoist;
    std::int64_t propagated;
  };
  // 12 columns forward, or `out` forward and backward; backward too where x wants a gradient.
  for (const Case& c : {Case{40, false, false, 12},
                        {5, false, false, 5},
                        {8, false, false, 12},
                        {40, true, false, 12},
                        {8, true, false, 8},
                        {1, false, true, 12}}) {
    INFO(c.out << " columns out, gradient " << c.wants_gradient << ", hoisting " << c.hoist);
    TensorGraph graph(DType::kF64);
    const TensorId x = graph.input("x", 12, DType::kF64, c.wants_gradient);
    const TensorId out = graph.apply("tanh", {convolution(graph, x, c.out)});
    Rewritten moved = move_operators(graph);
    const TensorId moved_out = moved.at(out);
    Rewritten merged = merge_common(moved.graph);
    const TensorId merged_out = merged.at(moved_out);
    const Rewritten ordered = order_matmuls(merged.graph, {merged_out}, c.hoist);
    CHECK(gathered_cols(ordered.graph) == std::vector<std::int64_t>{c.propagated});
    CHECK(count(ordered.graph, "matmul", Space::kVertex) == 1);
    check_same(harness, merged.graph, ordered, merged_out);
  }
}

TEST_CASE("rewrites: a wide mean is transformed before it is propagated") {
  GraphHarness harness(directed_graph());
  harness.add_input("x", 40);
  TensorGraph graph(DType::kF64);
  const TensorId x = graph.apply("relu", {graph.input("x", 40, DType::kF64, true)});
  const TensorId mean =
      gather_mean(graph, graph.source(x), degree_factor(graph, DegreeFactor::kInverseIn));
  const TensorId out = graph.apply("matmul", {mean, graph.parameter("w", 40, 7)});
  const TensorId own = graph.apply("matmul", {x, graph.parameter("v", 40, 7)});
  const TensorId sum = graph.apply("add", {out, own});
  const Rewritten ordered = order_matmuls(graph, {sum}, true);
  CHECK(gathered_cols(ordered.graph) == std::vector<std::int64_t>{7});
  check_same(harness, graph, ordered, sum);
}

namespace {

// By gather, in order: what makes the rows that its edges bring, copies and factors left out.
std::vector<std::string> gathered(const TensorGraph& graph) {
  std::vector<std::string> makers;
  for (const Operation& gather : graph.operations()) {
    if (gather.def->name != "gather_sum") continue;
    const Operation* maker = &gather;
    do {
      const int producer = graph.tensor(maker->inputs[0]).producer;
      REQUIRE(producer >= 0);
      maker = &graph.operations()[static_cast<std::size_t>(producer)];
    } while (maker->def->linear == 1);
    makers.push_back(maker->def->name);
  }
  return makers;
}

}  // namespace

// Layers of as many columns on both sides, either way round, after an activation.
TEST_CASE("rewrites: with as many columns, forward and backward propagate what has zeros") {
  GraphHarness harness(directed_graph());
  harness.add_input("x", 9);
  for (const char* activation : {"relu", "tanh"}) {
    for (const bool transforms : {true, false}) {
      for (const bool trains_factor : {true, false}) {
        INFO(activation << ", the product is " << (transforms ? "first" : "last")
                        << ", a factor is trained: " << trains_factor);
        TensorGraph graph(DType::kF64);
        const TensorId first = graph.parameter("first", 9, 9), w = graph.parameter("w", 9, 9);
        const TensorId x = graph.apply(
            activation, {graph.apply("matmul", {graph.input("x", 9, DType::kF64), first})});
        const auto mean = [&](TensorId of) {
          const TensorId rows =
              gather_mean(graph, graph.source(of), degree_factor(graph, DegreeFactor::kInverseIn));
          return trains_factor ? graph.apply("scale_by", {rows, graph.parameter("eps", 1, 1)})
                               : rows;
        };
        const TensorId product =
            transforms ? mean(graph.apply("matmul", {x, w})) : graph.apply("matmul", {mean(x), w});
        const TensorId hidden = graph.apply(activation, {product});
        const TensorId loss = graph.apply(
            "softmax_cross_entropy",
            {hidden, graph.input("labels", 1, DType::kI32), graph.input("splits", 1, DType::kU8)},
            {.count = 20});
        Rewritten ordered = order_matmuls(graph, {loss}, true);
        const Gradients gradients = add_gradients(ordered.graph, {ordered.at(loss), -1});
        std::vector<TensorId> roots{ordered.at(loss)};
        for (const auto& [tensor, parts] : gradients) {
          const bool parameter = ordered.graph.shape(tensor).space == Space::kParameter;
          if (parameter) roots.push_back(parts[0]);
        }
        const Rewritten sparse = gather_sparse_rows(ordered.graph, roots);
        const bool zeros = std::string(activation) == "relu";
        const std::string backward = zeros ? "keep_bits" : "tanh_gradient";
        std::vector<std::string> makers{activation, "matmul"};
        if (transforms) makers = {"matmul", backward};
        if (zeros && !trains_factor) makers = {activation, backward};
        CHECK(gathered(sparse.graph) == makers);
        const Rewritten forward = order_matmuls(graph, {loss}, true);
        const Rewritten evaluation = gather_sparse_rows(forward.graph, {forward.at(loss)});
        CHECK(gathered(evaluation.graph) == std::vector<std::string>{makers[0]});
        for (const TensorId root : roots) check_same(harness, ordered.graph, sparse, root);
      }
    }
  }
}

TEST_CASE("rewrites: a matmul behind a gather of what both ends feed stays at the vertices") {
  TensorGraph graph(DType::kF64);
  const TensorId x = graph.input("x", 40, DType::kF64, true);
  const TensorId edge = graph.apply("mul", {graph.source(x), graph.destination(x)});
  const TensorId out =
      graph.apply("matmul", {gather_sum(graph, edge), graph.parameter("w", 40, 7)});
  const Rewritten ordered = order_matmuls(graph, {out}, true);
  CHECK(count(ordered.graph, "matmul", Space::kEdge) == 0);
  CHECK(gathered_cols(ordered.graph) == std::vector<std::int64_t>{40});
}

TEST_CASE("rewrites: only what depends on inputs alone is hoisted") {
  TensorGraph graph(DType::kF64);
  const TensorId x = graph.input("x", 9, DType::kF64);
  const TensorId ids = graph.input("ids", 1, DType::kI64);
  const TensorId w = graph.parameter("w", 9, 9);
  const TensorId constant = graph.apply("relu", {gather_sum(graph, graph.source(x))});
  const TensorId dropped = graph.apply("dropout", {x, ids}, {.value = 0.5, .key = 1});
  const TensorId random = gather_sum(graph, graph.source(dropped));
  const TensorId trained = gather_sum(graph, graph.source(graph.apply("matmul", {x, w})));
  const TensorId product = graph.apply("matmul", {constant, w});
  const TensorId out = graph.apply("add", {graph.apply("add", {product, random}), trained});
  std::vector<Hoisted> hoisted;
  const Rewritten rest = hoist_constants(graph, hoisted);
  REQUIRE(hoisted.size() == 1);
  CHECK(hoisted[0].tensor == constant);
  CHECK(rest.graph.tensor(rest.at(constant)).producer < 0);
  CHECK(rest.graph.tensor(rest.at(constant)).name == hoisted[0].input);
  CHECK(rest.graph.tensor(rest.at(random)).producer >= 0);
  CHECK(drop_dead(rest.graph, {rest.at(out)}).graph.operations().size() <
        graph.operations().size());
}

TEST_CASE("rewrites: --rewrites names what it takes") {
  CHECK(parse_rewrites("") == Rewrites{});
  const Rewrites some = parse_rewrites("-fusion,-motion");
  CHECK_FALSE(some.fusion);
  CHECK_FALSE(some.motion);
  CHECK(some.order);
  for (const char* wrong : {"fusion", "-fussion", "-fusion -motion"}) {
    CHECK_THROWS_AS(parse_rewrites(wrong), UsageError);
  }
  CHECK_THROWS_WITH(parse_rewrites("-fussion"), Contains("-motion, -common, -order"));
}

TEST_CASE("rewrites: training gives the same with each of them left out") {
  TinyDataset spec;
  spec.vertices = 300;
  spec.feature_cols = 40;
  spec.edges = test::random_edges(300, 2400, 21);
  RunConfig config;
  config.model.hidden = 24;
  config.model.layers = 3;
  config.epochs = 10;
  const auto train = [&](const std::string& rewrites) {
    config.rewrites = rewrites;
    test::MemoryFileSystem files;
    const Dataset dataset = test::write_tiny_dataset(files, spec);
    const auto backend = make_cpu_backend();
    test::MemoryBlockIo io(files);
    Trainer trainer(*backend, io, dataset, config);
    std::vector<double> losses;
    for (std::int64_t i = 0; i < config.epochs; ++i) {
      const EpochRecord record = trainer.run_epoch(nullptr).value();
      losses.push_back(record.loss);
      losses.push_back(record.valid_loss);
    }
    return losses;
  };
  const std::vector<double> all = train("");
  for (const char* without : {"-motion", "-common", "-order", "-hoisting", "-dead", "-fusion",
                              "-motion,-common,-order,-hoisting,-dead,-fusion"}) {
    const std::vector<double> losses = train(without);
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO(without << ", value " << i);
      CHECK(std::abs(losses[i] - all[i]) <= 2e-4 * std::abs(all[i]));
    }
  }
}
