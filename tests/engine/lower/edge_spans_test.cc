// Edge work of graphs with several spans and panels: the same results however they are grouped.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/graph/edge_operators.h"
#include "engine/graph/row_operators.h"
#include "tests/engine/graph_harness.h"

using namespace ooc;
using test::GraphHarness;
using test::TinyDataset;

namespace {

constexpr std::int64_t kTypes = 3, kFeatures = 5;

TinyDataset with_edge_data(TinyDataset spec) {
  spec.edge_weights = true;
  spec.edge_types = kTypes;
  spec.edge_feature_cols = kFeatures;
  return spec;
}

// Dense enough for ten spans.
TinyDataset dense_graph() {
  TinyDataset spec;
  spec.vertices = 300;
  spec.edges = test::random_edges(290, 20000, 5);
  spec.edges.insert(spec.edges.end(), 3, Edge{8, 8});
  spec.panel_blocks = 7;
  return with_edge_data(spec);
}

// Small enough for central differences, cut into six spans. Loops and parallel edges, vertices and
// blocks without edges.
TinyDataset small_graph() {
  TinyDataset spec;
  spec.vertices = 83;
  spec.edges = test::random_edges(60, 200, 3);
  for (std::int64_t v = 0; v < 60; v += 2) spec.edges.push_back({v, 70});
  for (int i = 0; i < 3; ++i) spec.edges.push_back({4, 9});
  spec.edges.insert(spec.edges.end(), 2, Edge{7, 7});
  spec.span_rows = spec.block_rows;
  spec.panel_blocks = 2;
  return with_edge_data(spec);
}

void require_spans(const Dataset& dataset) {
  REQUIRE(dataset.manifest().edges.span_count() > 2);
  REQUIRE(dataset.manifest().edges.panel_count() > 2);
}

TensorId vertices(TensorGraph& graph, const char* name, std::int64_t cols) {
  return graph.input(name, cols, DType::kF64, true);
}

// A gate by both ends (with a matmul that stays on the edges), the edge's weight, its features.
// `name` begins the names of its parameters.
TensorId gated(TensorGraph& graph, const std::string& name, std::int64_t cols, bool loops) {
  const TensorId u = graph.source(vertices(graph, "x", cols), loops);
  const TensorId v = graph.destination(vertices(graph, "y", cols), loops);
  const TensorId sum = graph.apply("tanh", {graph.apply("add", {u, v})});
  const TensorId mixed = graph.apply("matmul", {sum, graph.parameter(name + ".w", cols, cols)});
  const TensorId features = graph.edge_input(kEdgeFeaturesInput, kFeatures, DType::kF64, loops);
  const TensorId felt =
      graph.apply("matmul", {features, graph.parameter(name + ".f", kFeatures, cols)});
  const TensorId gate = graph.apply("sigmoid", {graph.apply("add", {mixed, felt})});
  const TensorId weight = graph.edge_input(kEdgeWeightsInput, 1, DType::kF64, loops);
  return graph.apply("scale_rows", {graph.apply("mul", {gate, u}), weight});
}

TensorId attention(TensorGraph& graph, std::int64_t heads, std::int64_t width, bool loops) {
  const TensorId x = vertices(graph, "x", heads * width);
  const TensorId y = vertices(graph, "y", heads * width);
  Attributes by_head, slope;
  by_head.heads = heads;
  slope.value = 0.2;
  const TensorId score = graph.apply(
      "head_sum",
      {graph.apply("scale_cols", {graph.source(x, loops), graph.parameter("a", 1, heads * width)})},
      by_head);
  const TensorId offset = graph.apply("head_sum", {graph.destination(y, loops)}, by_head);
  const TensorId sum = graph.apply("leaky_relu", {graph.apply("add", {score, offset})}, slope);
  Attributes dropout;
  dropout.value = 0.3;
  dropout.key = 9;
  dropout.heads = heads;
  const TensorId value =
      graph.apply("edge_dropout", {graph.source(x, loops), edge_key(graph, loops)}, dropout);
  return gather_softmax(graph, sum, value);
}

TensorId by_type(TensorGraph& graph, const std::string& name, std::int64_t cols, bool loops) {
  const TensorId all = graph.apply(
      "matmul", {vertices(graph, "x", cols), graph.parameter(name + ".m", cols, kTypes * cols)});
  Attributes picked;
  picked.cols = cols;
  return graph.apply(
      "pick_type",
      {graph.source(all, loops), graph.edge_input(kEdgeTypesInput, 1, DType::kI32, loops)}, picked);
}

// One of everything, added up.
TensorId everything(TensorGraph& graph, std::int64_t cols, bool loops) {
  TensorId sum = gather_sum(graph, gated(graph, "sum", cols, loops));
  const DegreeFactor inverse = loops ? DegreeFactor::kInverseInWithLoops : DegreeFactor::kInverseIn;
  const TensorId more[] = {
      gather_mean(graph, by_type(graph, "mean", cols, loops), degree_factor(graph, inverse)),
      gather_max(graph, gated(graph, "max", cols, loops)),
      gather_min(graph, by_type(graph, "min", cols, loops)), attention(graph, cols / 5, 5, loops)};
  for (const TensorId tensor : more) sum = graph.apply("add", {sum, tensor});
  return sum;
}

// Element by element, edge after edge.
struct Folds {
  std::vector<double> sum, max, weighted, weight;
  std::vector<std::int64_t> count;
};

Folds folds_of(const TinyDataset& spec, GraphHarness& harness, std::int64_t cols,
               std::int64_t heads, bool loops) {
  const auto size = static_cast<std::size_t>(spec.vertices * cols);
  Folds folds{std::vector<double>(size), std::vector<double>(size), std::vector<double>(size),
              std::vector<double>(size),
              std::vector<std::int64_t>(static_cast<std::size_t>(spec.vertices))};
  std::vector<bool> has_loop(static_cast<std::size_t>(spec.vertices));
  const auto add = [&](const Edge& e, double edge_weight) {
    const bool first = folds.count[static_cast<std::size_t>(e.destination)]++ == 0;
    for (std::int64_t c = 0; c < cols; ++c) {
      const auto at = static_cast<std::size_t>(e.destination * cols + c);
      const std::int64_t head = c / (cols / heads);
      const double value = harness.source("x").at(e.source, c);
      const double share = std::exp(harness.source("s").at(e.source, head) +
                                    harness.source("s").at(e.destination, head));
      folds.sum[at] += edge_weight * value;
      folds.max[at] = first ? value : std::max(folds.max[at], value);
      folds.weighted[at] += share * value;
      folds.weight[at] += share;
    }
  };
  for (std::size_t i = 0; i < spec.edges.size(); ++i) {
    const Edge& e = spec.edges[i];
    add(e, static_cast<double>(test::tiny_edge(spec, i).weight));
    if (e.source == e.destination) has_loop[static_cast<std::size_t>(e.source)] = true;
  }
  for (std::int64_t v = 0; loops && v < spec.vertices; ++v) {
    if (!has_loop[static_cast<std::size_t>(v)]) add({v, v}, 1);
  }
  for (std::size_t i = 0; i < size; ++i) folds.weighted[i] /= std::max(folds.weight[i], 1e-300);
  return folds;
}

void check_close(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i]);
    if (!(difference <= worst)) worst = std::max(worst, std::isnan(difference) ? 1e9 : difference);
  }
  CHECK(worst < 1e-11);
}

}  // namespace

TEST_CASE("spans: folds give what a list of edges gives, however spans are grouped") {
  const std::int64_t cols = 40, heads = 5;
  const TinyDataset spec = dense_graph();
  GraphHarness harness(spec);
  require_spans(harness.dataset());
  harness.add_input("x", cols);
  harness.add_input("s", heads);
  for (const bool loops : {false, true}) {
    TensorGraph graph(DType::kF64);
    const TensorId edge = graph.source(vertices(graph, "x", cols), loops);
    const TensorId weight = graph.edge_input(kEdgeWeightsInput, 1, DType::kF64, loops);
    const TensorId s = vertices(graph, "s", heads);
    const TensorId score =
        graph.apply("add", {graph.source(s, loops), graph.destination(s, loops)});
    const TensorId sum = gather_sum(graph, graph.apply("scale_rows", {edge, weight}));
    const TensorId max = gather_max(graph, edge);
    const TensorId softmax = gather_softmax(graph, score, edge);
    const Folds expected = folds_of(spec, harness, cols, heads, loops);
    for (const std::int64_t group : {0, 1, 2, 3, 10}) {
      INFO("loops " << loops << ", spans at once " << group);
      const auto result = harness.run(graph, {sum, max, softmax}, {.span_group = group}).tensors;
      check_close(result.at(sum), expected.sum);
      check_close(result.at(max), expected.max);
      check_close(result.at(softmax), expected.weighted);
    }
  }
}

TEST_CASE("spans: results and gradients have the same bits for any groups and threads") {
  const std::int64_t cols = 35;
  GraphHarness harness(dense_graph());
  require_spans(harness.dataset());
  for (const char* name : {"x", "y", "cotangent"}) harness.add_input(name, cols);
  for (const bool loops : {false, true}) {
    TensorGraph graph(DType::kF64);
    const TensorId out = everything(graph, cols, loops);
    const auto count = static_cast<TensorId>(graph.tensors().size());
    const GradientSeed seed{out, graph.input("cotangent", cols, DType::kF64)};
    std::vector<TensorId> roots{out};
    for (const auto& [tensor, parts] : add_gradients(graph, seed)) {
      if (tensor >= count || graph.tensor(tensor).producer >= 0) continue;
      for (const TensorId part : parts) {
        if (graph.tensor(part).producer >= 0) roots.push_back(part);
      }
    }
    REQUIRE(roots.size() >= 10);  // the output; x, y and seven parameters
    const auto expected = harness.run(graph, roots).tensors;
    for (const double value : expected.at(out)) REQUIRE(std::isfinite(value));
    for (const std::int64_t threads : {1, 4}) {
      for (const std::int64_t group : {0, 1, 2}) {
        INFO("loops " << loops << ", " << threads << " threads, spans at once " << group);
        CHECK(harness.run(graph, roots, {.workers = threads, .span_group = group}).tensors ==
              expected);
      }
    }
  }
}

TEST_CASE("spans: gradients agree with central differences however spans are grouped") {
  for (const std::int64_t cols : {5, 35}) {
    for (const bool loops : {false, true}) {
      for (const std::int64_t group : {0, 1, 2}) {
        GraphHarness harness(small_graph());
        require_spans(harness.dataset());
        harness.add_input("x", cols);
        harness.add_input("y", cols);
        harness.plan({.span_group = group});
        harness.sample(4);
        INFO(cols << " columns, loops " << loops << ", spans at once " << group);
        harness.check_gradients([&](TensorGraph& graph) { return everything(graph, cols, loops); },
                                1e-5);
      }
    }
  }
}
