#include "engine/graph/edge_operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/graph/row_operators.h"
#include "tests/engine/graph_harness.h"

using namespace ooc;
using test::GraphHarness;
using test::TinyDataset;

namespace {

// Directed; with vertices without edges, self loops, parallel edges, two vertices that many point
// to, and blocks without any edge.
TinyDataset awkward_graph() {
  TinyDataset spec;
  spec.vertices = 83;
  spec.edges = test::random_edges(40, 120, 3);
  for (std::int64_t v = 0; v < 40; ++v) spec.edges.push_back({v, 7});
  for (std::int64_t v = 0; v < 40; v += 2) spec.edges.push_back({3, v});
  for (const Edge& edge : {Edge{5, 5}, Edge{7, 7}, Edge{7, 7}, Edge{80, 81}}) {
    spec.edges.push_back(edge);
  }
  for (int i = 0; i < 3; ++i) spec.edges.push_back({4, 9});
  return spec;
}

TensorId x(TensorGraph& graph, std::int64_t cols) {
  return graph.input("x", cols, DType::kF64, true);
}
TensorId y(TensorGraph& graph, std::int64_t cols) {
  return graph.input("y", cols, DType::kF64, true);
}

// G-GCN's edge: sigmoid(W_s x_u + W_t y_v) * x_u (NGra §2.1).
TensorId gated(TensorGraph& graph, std::int64_t cols, bool loops = false) {
  const TensorId s = graph.apply("matmul", {x(graph, cols), graph.parameter("ws", cols, cols)});
  const TensorId t = graph.apply("matmul", {y(graph, cols), graph.parameter("wt", cols, cols)});
  const TensorId sum = graph.apply("add", {graph.source(s, loops), graph.destination(t, loops)});
  return graph.apply("mul", {graph.apply("sigmoid", {sum}), graph.source(x(graph, cols), loops)});
}

TensorId mean(TensorGraph& graph, TensorId edges) {
  const bool loops = graph.shape(edges).loops;
  return gather_mean(
      graph, edges,
      degree_factor(graph, loops ? DegreeFactor::kInverseInWithLoops : DegreeFactor::kInverseIn));
}

TensorId weights(TensorGraph& graph, bool loops) {
  return graph.edge_input(kEdgeWeightsInput, 1, DType::kF64, loops);
}

// The edges an edge set has: those of the data, and loops where it has none.
std::vector<Edge> edge_set(const TinyDataset& spec, bool loops) {
  std::vector<Edge> edges = spec.edges;
  for (std::int64_t v = 0; loops && v < spec.vertices; ++v) {
    const bool has = std::any_of(spec.edges.begin(), spec.edges.end(),
                                 [&](Edge e) { return e.source == v && e.destination == v; });
    if (!has) edges.push_back({v, v});
  }
  return edges;
}

}  // namespace

TEST_CASE("edges: sums over edge expressions agree with central differences") {
  for (const std::int64_t cols : {1, 3, 9, 40, 70}) {
    for (const bool loops : {false, true}) {
      GraphHarness harness(awkward_graph());
      harness.add_input("x", cols);
      harness.add_input("y", cols);
      INFO(cols << " columns, loops " << loops);
      harness.check_gradients(
          [&](TensorGraph& graph) { return gather_sum(graph, gated(graph, cols, loops)); });
    }
  }
}

TEST_CASE("edges: means and maxima agree with central differences") {
  for (const std::int64_t cols : {3, 40}) {
    for (const bool loops : {false, true}) {
      GraphHarness harness(awkward_graph());
      harness.add_input("x", cols);
      harness.add_input("y", cols);
      INFO(cols << " columns, loops " << loops);
      harness.check_gradients(
          [&](TensorGraph& graph) { return mean(graph, gated(graph, cols, loops)); });
      harness.check_gradients(
          [&](TensorGraph& graph) { return gather_max(graph, gated(graph, cols, loops)); });
      harness.check_gradients(
          [&](TensorGraph& graph) { return gather_min(graph, gated(graph, cols, loops)); });
    }
  }
}

TEST_CASE("edges: a matmul of what both ends feed runs on edges, gradients too") {
  GraphHarness harness(awkward_graph());
  harness.add_input("x", 9);
  harness.add_input("y", 9);
  harness.check_gradients([&](TensorGraph& graph) {
    TensorId edge = graph.apply("add", {graph.source(x(graph, 9)), graph.destination(y(graph, 9))});
    edge = graph.apply("tanh", {edge});
    edge = graph.apply("matmul", {edge, graph.parameter("w", 9, 35)});
    edge = graph.apply("bias", {edge, graph.parameter("b", 1, 35)});
    return gather_sum(graph, graph.apply("sigmoid", {edge}));
  });
}

TEST_CASE("edges: softmax-weighted sums agree with central differences") {
  for (const auto& [heads, width] : {std::pair{1, 5}, {4, 8}, {8, 8}, {3, 20}, {32, 2}}) {
    GraphHarness harness(awkward_graph());
    harness.add_input("x", heads * width);
    harness.add_input("y", heads);
    INFO(heads << " heads of " << width);
    harness.check_gradients([&, heads = heads, width = width](TensorGraph& graph) {
      const TensorId h = x(graph, heads * width);
      const TensorId score = graph.apply("matmul", {h, graph.parameter("a", heads * width, heads)});
      Attributes slope;
      slope.value = 0.2;
      const TensorId sum =
          graph.apply("add", {graph.source(score, true), graph.destination(y(graph, heads), true)});
      return gather_softmax(graph, graph.apply("leaky_relu", {sum}, slope), graph.source(h, true));
    });
  }
}

TEST_CASE("edges: folds give what a list of edges gives, however spans are grouped or edges cut") {
  const std::int64_t cols = 40, heads = 5;
  for (const bool loops : {false, true}) {
    const TinyDataset spec = awkward_graph();
    GraphHarness harness(spec);
    harness.add_input("x", cols);
    harness.add_input("y", heads);
    TensorGraph graph(DType::kF64);
    const TensorId edge = graph.source(x(graph, cols), loops);
    const TensorId positive = graph.apply("sigmoid", {edge});
    const TensorId score = graph.destination(y(graph, heads), loops);
    const TensorId score_u = graph.source(y(graph, heads), loops);
    const std::vector<TensorId> roots{
        gather_sum(graph, positive), mean(graph, edge), gather_max(graph, edge),
        gather_min(graph, edge), gather_softmax(graph, graph.apply("add", {score, score_u}), edge)};
    const auto result = harness.run(graph, roots);
    for (const std::int64_t group : {1, 2, 5}) {
      CHECK(harness.run(graph, roots, {.span_group = group}).tensors == result.tensors);
    }
    CHECK(harness.run(graph, roots, {.fuse_edges = false}).tensors == result.tensors);

    std::vector<std::vector<double>> expected(
        roots.size(), std::vector<double>(static_cast<std::size_t>(spec.vertices * cols), 0.0));
    for (std::int64_t v = 0; v < spec.vertices; ++v) {
      for (std::int64_t c = 0; c < cols; ++c) {
        double sum = 0, total = 0, weight = 0, weighted = 0;
        double largest = -std::numeric_limits<double>::infinity(), smallest = -largest;
        for (const Edge& e : edge_set(spec, loops)) {
          if (e.destination != v) continue;
          const double value = harness.source("x").at(e.source, c);
          const std::int64_t head = c / (cols / heads);
          const double share =
              std::exp(harness.source("y").at(e.source, head) + harness.source("y").at(v, head));
          sum += 1 / (1 + std::exp(-value));
          total += value;
          weight += share;
          weighted += share * value;
          largest = std::max(largest, value);
          smallest = std::min(smallest, value);
        }
        if (weight == 0) continue;
        std::int64_t count = 0;
        for (const Edge& e : edge_set(spec, loops)) count += e.destination == v ? 1 : 0;
        const double values[] = {sum, total / static_cast<double>(count), largest, smallest,
                                 weighted / weight};
        for (std::size_t i = 0; i < roots.size(); ++i) {
          expected[i][static_cast<std::size_t>(v * cols + c)] = values[i];
        }
      }
    }
    for (std::size_t i = 0; i < roots.size(); ++i) {
      INFO("fold " << i << ", loops " << loops);
      const std::vector<double>& got = result.tensors.at(roots[i]);
      REQUIRE(got.size() == expected[i].size());
      double worst = 0;
      for (std::size_t k = 0; k < got.size(); ++k) {
        worst = std::max(worst, std::abs(got[k] - expected[i][k]));
      }
      CHECK(worst < 1e-12);
    }
  }
}

TEST_CASE("edges: weighted sums agree with central differences, products are folded as they come") {
  for (const bool loops : {false, true}) {
    TinyDataset spec = awkward_graph();
    spec.edge_weights = true;
    GraphHarness harness(spec);
    harness.add_input("x", 40);
    const auto sum = [&](TensorGraph& graph) {
      const TensorId rows = graph.source(x(graph, 40), loops);
      return gather_sum(graph, graph.apply("scale_rows", {rows, weights(graph, loops)}));
    };
    harness.check_gradients(sum);
    TensorGraph graph(DType::kF64);
    const TensorId root = sum(graph);
    const StagedGraph staged = make_stages(graph, "test", {root});
    const Propagation& work = staged.program.stages.back().propagation.value();
    CHECK(work.steps.empty());
    CHECK(work.folds[0].inputs.size() == 2);
    CHECK(work.slice_local_cols == 40);
  }
}

TEST_CASE("edges: factors of weighted degrees, 0 where weights add up to nothing") {
  TinyDataset spec = awkward_graph();
  spec.edge_weights = true;
  GraphHarness harness(spec);
  struct Sums {
    double in = 0, out = 0, in_looped = 1, out_looped = 1;
  };
  std::vector<Sums> sums(static_cast<std::size_t>(spec.vertices));
  const auto of = [&](VertexId v) -> Sums& { return sums[static_cast<std::size_t>(v)]; };
  for (const Edge& edge : spec.edges) {
    if (edge.source == edge.destination) of(edge.source).in_looped = of(edge.source).out_looped = 0;
  }
  for (std::size_t e = 0; e < spec.edges.size(); ++e) {
    const double weight = static_cast<double>(test::tiny_edge(spec, e).weight);
    Sums &source = of(spec.edges[e].source), &target = of(spec.edges[e].destination);
    source.out += weight;
    source.out_looped += weight;
    target.in += weight;
    target.in_looped += weight;
  }
  const auto root = [](double sum) { return sum > 0 ? 1 / std::sqrt(sum) : 0; };
  const auto inverse = [](double sum) { return sum != 0 ? 1 / sum : 0; };
  TensorGraph graph(DType::kF64);
  std::vector<TensorId> roots;
  for (const DegreeFactor factor : {DegreeFactor::kIn, DegreeFactor::kOut, DegreeFactor::kInverseIn,
                                    DegreeFactor::kInverseInWithLoops}) {
    roots.push_back(weighted_degree_factor(graph, factor));
  }
  const auto found = harness.run(graph, roots).tensors;
  std::size_t zeros = 0;
  for (std::size_t v = 0; v < sums.size(); ++v) {
    const double expected[] = {root(sums[v].in_looped), root(sums[v].out_looped),
                               inverse(sums[v].in), inverse(sums[v].in_looped)};
    for (std::size_t i = 0; i < roots.size(); ++i) {
      CHECK(found.at(roots[i])[v] == Approx(expected[i]).epsilon(1e-9));
    }
    zeros += expected[0] == 0 ? 1 : 0;
  }
  CHECK(zeros > 0);
}
