// Every row operator of engine/graph/row_operators.cc: its gradient rule and the kernels that it
// names, against central differences, at widths that cross slices.
#include "engine/graph/row_operators.h"

#include "engine/graph/edge_operators.h"
#include "engine/rewrite/rewrites.h"
#include "tests/engine/graph_harness.h"

using namespace ooc;
using test::GraphHarness;
using test::TinyDataset;

namespace {

TinyDataset small_graph() {
  TinyDataset spec;
  spec.vertices = 29;  // a last block that is not full
  spec.edges = test::random_edges(20, 60, 3);
  return spec;
}

constexpr std::int64_t kTestedWidths[] = {5, 32, 70, 96};

// A model of one operator: vertex inputs by name, all of which want a gradient.
class Check {
 public:
  Check() : harness(small_graph()) {}

  TensorId x(TensorGraph& graph, const std::string& name, std::int64_t cols) {
    if (graph.tensors().empty()) added_.clear();
    if (!added_[name]) harness.add_input(name, cols);
    added_[name] = true;
    return graph.input(name, cols, DType::kF64, true);
  }

  GraphHarness harness;

 private:
  std::map<std::string, bool> added_;
};

void check_unary(const char* op, const Attributes& attributes = {}) {
  for (const std::int64_t cols : kTestedWidths) {
    INFO(op << ", " << cols << " columns");
    Check check;
    check.harness.check_gradients([&](TensorGraph& graph) {
      return graph.apply(op, {check.x(graph, "x", cols)}, attributes);
    });
  }
}

void check_binary(const char* op) {
  for (const std::int64_t cols : kTestedWidths) {
    INFO(op << ", " << cols << " columns");
    Check check;
    check.harness.check_gradients([&](TensorGraph& graph) {
      return graph.apply(op, {check.x(graph, "a", cols), check.x(graph, "b", cols)});
    });
  }
}

}  // namespace

TEST_CASE("row operators: element-wise ones agree with central differences") {
  check_binary("sub");
  check_binary("mul");
  check_binary("maximum");
  check_unary("affine", {.value = 1.5, .shift = -0.5});
}

TEST_CASE("row operators: activations agree with central differences") {
  for (const char* op : {"sigmoid", "tanh", "elu", "gelu", "exp"}) check_unary(op);
  check_unary("leaky_relu", {.value = 0.2});
}

TEST_CASE("row operators: factors agree with central differences") {
  for (const std::int64_t cols : kTestedWidths) {
    INFO(cols << " columns");
    Check check;
    check.harness.check_gradients([&](TensorGraph& graph) {
      const TensorId x = check.x(graph, "x", cols);
      return graph.apply("scale_rows", {x, check.x(graph, "f", 1)});
    });
    check.harness.check_gradients([&](TensorGraph& graph) {
      const TensorId x = check.x(graph, "x", cols);
      return graph.apply("scale_cols", {x, graph.parameter("a", 1, cols)});
    });
    check.harness.check_gradients([&](TensorGraph& graph) {
      const TensorId x = check.x(graph, "x", cols);
      return graph.apply("scale_by", {x, graph.parameter("s", 1, 1)});
    });
  }
}

TEST_CASE("row operators: heads agree with central differences") {
  const std::pair<std::int64_t, std::int64_t> shapes[] = {{5, 1},  {32, 4}, {32, 8}, {70, 1},
                                                          {56, 8}, {96, 4}, {96, 8}, {40, 40}};
  for (const auto& [cols, heads] : shapes) {
    INFO(cols << " columns, " << heads << " heads");
    Check check;
    const auto run = [&](auto&& build) { check.harness.check_gradients(build); };
    run([&, cols = cols, heads = heads](TensorGraph& graph) {
      const TensorId x = check.x(graph, "x", cols);
      return graph.apply("scale_heads", {x, check.x(graph, "f", heads)});
    });
    run([&, cols = cols, heads = heads](TensorGraph& graph) {
      const TensorId a = check.x(graph, "a", cols);
      return graph.apply("head_dot", {a, check.x(graph, "b", cols)}, {.heads = heads});
    });
    run([&, cols = cols, heads = heads](TensorGraph& graph) {
      return graph.apply("head_sum", {check.x(graph, "x", cols)}, {.heads = heads});
    });
    run([&, cols = cols, heads = heads](TensorGraph& graph) {
      return graph.apply("head_broadcast", {check.x(graph, "x", heads)}, {.cols = cols});
    });
    run([&, cols = cols, heads = heads](TensorGraph& graph) {
      return graph.apply("heads_mean", {check.x(graph, "x", cols)}, {.heads = heads});
    });
    run([&, cols = cols, heads = heads](TensorGraph& graph) {
      return graph.apply("heads_spread", {check.x(graph, "x", cols)}, {.heads = heads});
    });
  }
}

TEST_CASE("row operators: ranges of columns agree with central differences") {
  for (const std::int64_t cols : kTestedWidths) {
    INFO(cols << " columns");
    Check check;
    check.harness.add_typed<std::int32_t>("types", 1, [](auto v, auto) { return v * 7 % 3; });
    const auto types = [](TensorGraph& graph) { return graph.input("types", 1, DType::kI32); };
    const auto run = [&](auto&& build) { check.harness.check_gradients(build); };
    for (const std::int64_t other : {1, 37}) {
      run([&](TensorGraph& graph) {
        const TensorId a = check.x(graph, "a", cols);
        return graph.apply("concat", {a, check.x(graph, "b", other)});
      });
    }
    run([&](TensorGraph& graph) {
      return graph.apply("columns", {check.x(graph, "x", cols)}, {.begin = 2, .cols = cols - 3});
    });
    run([&](TensorGraph& graph) {
      return graph.apply("place_columns", {check.x(graph, "x", cols)},
                         {.begin = 2, .cols = cols + 35});
    });
    run([&](TensorGraph& graph) {
      const TensorId x = check.x(graph, "x", 3 * cols);
      return graph.apply("pick_type", {x, types(graph)}, {.cols = cols});
    });
    run([&](TensorGraph& graph) {
      const TensorId x = check.x(graph, "x", cols);
      return graph.apply("place_type", {x, types(graph)}, {.cols = 3 * cols});
    });
  }
}

TEST_CASE("row operators: the GRU cell agrees with central differences") {
  for (const std::int64_t cols : kTestedWidths) {
    INFO(cols << " columns");
    Check check;
    check.harness.check_gradients([&](TensorGraph& graph) {
      const TensorId gx = check.x(graph, "gx", 3 * cols);
      const TensorId gh = check.x(graph, "gh", 3 * cols);
      return graph.apply("gru", {gx, gh, check.x(graph, "h", cols)});
    });
  }
}

TEST_CASE("row operators: dropout of edges agrees with central differences") {
  for (const auto& [cols, heads] : {std::pair{5, 1}, {32, 4}, {96, 8}, {40, 5}}) {
    INFO(cols << " columns, " << heads << " heads");
    Check check;
    check.harness.add_typed<std::int64_t>("keys", 3, [](auto v, auto c) { return v * 3 + c; });
    check.harness.check_gradients([&, cols = cols, heads = heads](TensorGraph& graph) {
      const TensorId x = check.x(graph, "x", cols);
      return graph.apply("edge_dropout", {x, graph.input("keys", 3, DType::kI64)},
                         {.value = 0.4, .key = 3, .heads = heads});
    });
  }
}

TEST_CASE("row operators: losses agree with central differences") {
  Check check;
  // Whole rows and single entries without a label.
  const auto is_missing = [](auto v, auto c) { return v % 7 == 3 || (v + c) % 5 == 4; };
  check.harness.add_typed<std::uint8_t>(
      "bits", 40, [&](auto v, auto c) { return is_missing(v, c) ? 255 : (v * 3 + c * c) % 2; });
  check.harness.add_typed<float>("values", 40, [&](auto v, auto c) {
    return is_missing(v, c) ? std::nan("")
                            : static_cast<double>(v % 5) - 0.25 * static_cast<double>(c % 3);
  });
  // The harness divides by what the loss itself says; the gradient rule is told.
  const auto count_of = [&](auto&& weight) {
    const Dataset& dataset = check.harness.dataset();
    const auto rows = static_cast<std::size_t>(dataset.vertices());
    std::vector<std::int32_t> labels(rows);
    std::vector<std::uint8_t> splits(rows);
    dataset.tensor("labels")->read_rows(0, dataset.vertices(), labels.data());
    dataset.tensor("splits")->read_rows(0, dataset.vertices(), splits.data());
    double count = 0;
    for (std::size_t v = 0; v < rows; ++v) count += splits[v] == 1 ? weight(v, labels[v]) : 0;
    return count;
  };
  const double entries = count_of([&](auto v, auto) {
    double labelled = 0;
    for (std::size_t c = 0; c < 40; ++c) labelled += is_missing(v, c) ? 0 : 1;
    return labelled;
  });
  check.harness.check_gradients([&](TensorGraph& graph) {
    const TensorId x = check.x(graph, "x", 40);
    return graph.apply(
        "sigmoid_cross_entropy",
        {x, graph.input("bits", 40, DType::kU8), graph.input("splits", 1, DType::kU8)},
        {.count = entries});
  });
  check.harness.check_gradients([&](TensorGraph& graph) {
    const TensorId x = check.x(graph, "x", 40);
    const TensorId weights = graph.parameter("ones_weigh", 1, 40, false);
    return graph.apply(
        "sigmoid_cross_entropy_weighted",
        {x, graph.input("bits", 40, DType::kU8), graph.input("splits", 1, DType::kU8), weights},
        {.count = entries});
  });
  for (const ValueLoss loss : {ValueLoss::kSquared, ValueLoss::kAbsolute, ValueLoss::kHuber}) {
    check.harness.check_gradients([&](TensorGraph& graph) {
      const TensorId x = check.x(graph, "x", 40);
      return graph.apply(
          "value_loss",
          {x, graph.input("values", 40, DType::kF32), graph.input("splits", 1, DType::kU8)},
          {.value = static_cast<double>(loss), .count = entries});
    });
  }
  check.harness.check_gradients([&](TensorGraph& graph) {
    const TensorId x = check.x(graph, "x", 3);
    const TensorId weights = graph.parameter("weights", 1, 3, false);
    const std::vector<double>& w = check.harness.parameter(graph.tensor(weights)) = {0.5, 2, 1.25};
    return graph.apply(
        "softmax_cross_entropy_weighted",
        {x, graph.input("labels", 1, DType::kI32), graph.input("splits", 1, DType::kU8), weights},
        {.count = count_of([&](auto, auto label) { return w[static_cast<std::size_t>(label)]; })});
  });
}

TEST_CASE("row operators: factors of degrees and labels of two classes are columns of the data") {
  Check check;
  const Dataset& dataset = check.harness.dataset();
  const auto rows = static_cast<std::size_t>(dataset.vertices());
  std::vector<std::int32_t> degrees(3 * rows), labels(rows);
  dataset.tensor("degrees")->read_rows(0, dataset.vertices(), degrees.data());
  dataset.tensor("labels")->read_rows(0, dataset.vertices(), labels.data());
  TensorGraph graph(DType::kF64);
  const TensorId factor = degree_factor(graph, DegreeFactor::kIn);
  CHECK(degree_factor(graph, DegreeFactor::kIn) == factor);
  CHECK(degree_factor(graph, DegreeFactor::kOut) != factor);
  CHECK(graph.shape(binary_labels(graph)).dtype == DType::kU8);
  const TensorId scaled = graph.apply("scale_rows", {factor, factor});
  const std::vector<double> found = check.harness.run(graph, {scaled}).tensors.at(scaled);
  REQUIRE(found.size() == rows);
  for (std::size_t v = 0; v < rows; ++v) {
    CHECK(found[v] == Approx(1 / (degrees[3 * v] + 1.0)).epsilon(1e-14));
  }
}

TEST_CASE("row operators: a factor is no propagation, it isn't hoisted by itself") {
  TensorGraph graph(DType::kF64);
  const TensorId x =
      graph.apply("matmul", {graph.input("x", 4, DType::kF64), graph.parameter("w", 4, 4)});
  graph.apply("scale_rows", {x, degree_factor(graph, DegreeFactor::kOut)});
  graph.apply("scale_rows",
              {gather_sum(graph, graph.source(x)), degree_factor(graph, DegreeFactor::kIn)});
  std::vector<Hoisted> hoisted;
  hoist_constants(graph, hoisted);
  CHECK(hoisted.empty());
}
