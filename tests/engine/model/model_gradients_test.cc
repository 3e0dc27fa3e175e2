// Every model's gradients, through its loss, against central differences.
#include "engine/model/build.h"
#include "engine/model/library.h"
#include "engine/model/program.h"
#include "engine/rewrite/rewrites.h"
#include "tests/engine/graph_harness.h"

using namespace ooc;
using test::GraphHarness;
using test::TinyDataset;

namespace {

// Directed; vertices without edges, self loops, parallel edges, and a block without any edge.
TinyDataset awkward_graph() {
  TinyDataset spec;
  spec.vertices = 70;
  spec.edges = test::random_edges(30, 90, 3);
  for (int i = 0; i < 3; ++i) spec.edges.push_back({4, 9});
  for (int i = 0; i < 2; ++i) spec.edges.push_back({7, 7});
  for (std::int64_t v = 0; v < 30; v += 2) spec.edges.push_back({v, 60});
  return spec;
}

// The same in several spans and panels.
TinyDataset in_spans() {
  TinyDataset spec = awkward_graph();
  spec.span_rows = spec.block_rows;
  spec.panel_blocks = 2;
  return spec;
}

ModelOptions options_of(const std::string& name) {
  ModelOptions options;
  options.model = name;
  options.hidden = 5;
  // Smooth, where the program leaves it open: differences mean something everywhere.
  const bool open = embedded_program(name).find("act(") != std::string::npos;
  options.activation = open ? Activation::kElu : Activation::kRelu;
  options.input_dropout = 0.2;
  if (name == "gat" || name == "gatv2") {
    options.heads = 3;
    options.attn_dropout = 0.3;
  }
  return options;
}

void check_model(GraphHarness& harness, const ModelOptions& options) {
  const GraphFacts facts = facts_of(harness.dataset());
  for (const bool rewrite : {false, true}) {
    INFO(options.model << ", rewrites " << rewrite);
    harness.check_gradients(
        [&](TensorGraph& graph) {
          Model model = build_model(options, facts, Mode::kTrain, DType::kF64);
          Rewrites rewrites;
          rewrites.hoisting = false;  // its inputs would have to be computed first
          Precomputed precomputed;
          if (rewrite) model = rewrite_model(std::move(model), rewrites, precomputed);
          graph = model.graph;
          return model.loss;
        },
        1e-5);
  }
}

}  // namespace

TEST_CASE("models: every model's gradients agree with central differences") {
  for (const auto& [name, program] : embedded_models()) {
    GraphHarness harness(awkward_graph());
    harness.add_input("features", facts_of(harness.dataset()).feature_cols);
    check_model(harness, options_of(name));
  }
}

TEST_CASE("models: gradients agree with central differences however spans are grouped") {
  for (const auto& [name, program] : embedded_models()) {
    GraphHarness harness(in_spans());
    REQUIRE(harness.dataset().manifest().edges.span_count() > 2);
    REQUIRE(harness.dataset().manifest().edges.panel_count() > 2);
    harness.add_input("features", facts_of(harness.dataset()).feature_cols);
    harness.sample(4);
    for (const std::int64_t group : {1, 2}) {
      INFO(group << " spans at once");
      harness.plan({.span_group = group});
      check_model(harness, options_of(name));
    }
  }
}

TEST_CASE("models: aggregations, norms, residuals, heads and jumping knowledge have gradients") {
  GraphHarness harness(awkward_graph());
  harness.add_input("features", facts_of(harness.dataset()).feature_cols);
  for (const Aggregation aggr : {Aggregation::kMean, Aggregation::kMax, Aggregation::kSum}) {
    ModelOptions options = options_of("sage");
    options.aggr = aggr;
    check_model(harness, options);
  }
  for (const Jumping jumping : {Jumping::kSum, Jumping::kCat, Jumping::kMax}) {
    ModelOptions options = options_of("gat");
    options.layers = 3;
    options.jumping = jumping;
    options.norm = jumping == Jumping::kCat ? Norm::kBatch : Norm::kLayer;
    options.residual = true;
    options.linear_head = true;
    check_model(harness, options);
  }
}

TEST_CASE("models: a star of 10,000 has gradients") {
  TinyDataset spec;
  spec.vertices = 10001;
  spec.block_rows = 1024;
  for (std::int64_t v = 1; v < spec.vertices; ++v) {
    spec.edges.push_back({v, 0});
    if (v % 2 == 0) spec.edges.push_back({0, v});
  }
  GraphHarness harness(spec);
  harness.add_input("features", facts_of(harness.dataset()).feature_cols);
  harness.sample(3);
  for (const char* name : {"gat", "ggcn", "mpgcn"}) {
    ModelOptions options = options_of(name);
    options.hidden = 3;
    const GraphFacts facts = facts_of(harness.dataset());
    INFO(name);
    harness.check_gradients(
        [&](TensorGraph& graph) {
          const Model model = build_model(options, facts, Mode::kTrain, DType::kF64);
          graph = model.graph;
          return model.loss;
        },
        1e-5);
  }
}
