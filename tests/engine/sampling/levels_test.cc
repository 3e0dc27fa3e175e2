#include "engine/sampling/levels.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "engine/graph/edge_operators.h"
#include "engine/graph/operators.h"
#include "engine/model/build.h"
#include "engine/sampling/sampled_sums.h"
#include "tests/engine/graph_harness.h"
#include "tests/engine/train/all_models.h"

using namespace ooc;
using test::GraphHarness;
using test::TinyDataset;

namespace {

const Rewrites kRewrites{.hoisting = false};

// Directed, with all that edges may carry, loops of vertices and parallel edges.
TinyDataset typed_graph() {
  TinyDataset spec;
  spec.vertices = 70;
  spec.feature_cols = 6;
  spec.edges = test::random_edges(64, 300, 21);
  spec.edges.insert(spec.edges.end(), {{7, 7}, {7, 7}, {9, 9}});
  spec.edge_weights = true;
  spec.edge_types = 3;
  spec.edge_feature_cols = 4;
  return spec;
}

ModelOptions options_of(const std::string& model, std::int64_t layers) {
  ModelOptions options;
  options.model = model;
  options.layers = layers;
  options.hidden = 8;
  options.attn_dropout = model.starts_with("gat") ? 0.3 : 0;
  if (model.starts_with("gat")) options.heads = 2;
  return options;
}

Model rewritten_model(const ModelOptions& options, const GraphFacts& facts, Mode mode,
                      DType real = DType::kF32) {
  Precomputed once;
  return rewrite_model(build_model(options, facts, mode, real), kRewrites, once);
}

// With gradients, as a program is made of it; all roots of that.
struct Differentiated {
  Model model;
  Gradients gradients;
  std::vector<TensorId> roots;

  explicit Differentiated(Model of) : model(std::move(of)) {
    gradients = add_gradients(model.graph, {model.loss, -1});
    model = gather_sparse_rows(std::move(model), gradients, kRewrites);
    model = rewritten(std::move(model), gradients, merge_common(model.graph));
    roots = {model.loss};
    for (const ModelParameter& parameter : model.parameters) {
      if (!parameter.trainable) continue;
      const std::vector<TensorId>& parts = gradients.at(parameter.tensor);
      roots.insert(roots.end(), parts.begin(), parts.end());
    }
  }
};

int level_of_input(const TensorGraph& graph, const std::string& name) {
  for (const Tensor& tensor : graph.tensors()) {
    if (tensor.producer < 0 && tensor.name == name) return tensor.shape.level;
  }
  return -2;
}

// Stages have rows of one level; what changes it reads what lies in memory.
void check_stages(const Program& program) {
  std::set<ValueId> there;
  const auto value = [&](ValueId id) { return program.values[static_cast<std::size_t>(id)]; };
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    if (program.values[id].kind == ValueKind::kInput) there.insert(static_cast<ValueId>(id));
  }
  for (const Stage& stage : program.stages) {
    INFO("stage " << stage.name);
    std::set<int> levels;
    std::set<ValueId> made;
    if (stage.propagation) {
      const Propagation& work = *stage.propagation;
      std::set<int> edges;
      for (const EdgeInput& input : work.inputs) {
        edges.insert(value(input.edge).level);
        if (input.vertex < 0) continue;
        const bool source =
            (input.load == EdgeLoad::kStreamed) == (work.direction == Direction::kIn);
        CHECK(value(input.vertex).level == value(input.edge).level + (source ? 1 : 0));
        CHECK(there.contains(input.vertex));
      }
      for (const RowStep& step : work.steps) edges.insert(value(step.outputs[0]).level);
      edges.erase(kAllRows);  // of sums
      REQUIRE(edges.size() == 1);
      levels.insert(*edges.begin() + (work.direction == Direction::kOut ? 1 : 0));
      for (const EdgeFold& fold : work.folds) {
        for (const ValueId id : fold.accumulators) {
          levels.insert(value(id).level);
          made.insert(id);
        }
      }
    }
    for (const RowStep& step : stage.steps) {
      const bool changes = step.op == "first_rows" || step.op == "extend_rows";
      for (const ValueId id : step.inputs) {
        const ValueKind kind = value(id).kind;
        if (kind == ValueKind::kParameter || kind == ValueKind::kReduction) continue;
        if (changes) CHECK(there.contains(id));
        if (!changes) CHECK((there.contains(id) || made.contains(id)));
        if (!changes) levels.insert(value(id).level);
      }
      if (value(step.outputs[0]).kind == ValueKind::kReduction) continue;
      levels.insert(value(step.outputs[0]).level);
      made.insert(step.outputs[0]);
    }
    CHECK(levels.size() == 1);
    CHECK(*levels.begin() >= 0);
    there.insert(made.begin(), made.end());
  }
}

}  // namespace

TEST_CASE("levels: inputs of every model have as many as it has propagations") {
  const GraphFacts facts{1000, 50, 7, 100, 3, 4, true};
  for (const char* name : test::kAllModels) {
    for (const std::int64_t layers : {1, 2, 3}) {
      for (const Norm norm : {Norm::kNone, Norm::kBatch}) {
        ModelOptions options = options_of(name, layers);
        options.norm = norm;
        options.residual = layers == 3;
        if (std::string(name) == "sgc") options.norm = Norm::kNone, options.residual = false;
        if (std::string(name) == "gcn" && layers == 3) options.jumping = Jumping::kCat;
        INFO(name << ", " << layers << " layers, norm " << static_cast<int>(norm));
        BatchModel batch = batch_model(rewritten_model(options, facts, Mode::kTrain));
        CHECK(batch.hops == layers);
        const TensorGraph& graph = batch.model.graph;
        CHECK(level_of_input(graph, "features") == layers);
        CHECK(level_of_input(graph, "labels") == 0);
        CHECK(level_of_input(graph, "splits") == 0);
        CHECK(graph.shape(batch.model.logits).level == 0);
        const ModelProgram program(batch.model, "batches", {.gradients = true, .logits = true},
                                   {.rewrites = kRewrites});
        check_stages(program.program());
        CHECK(graph.has_input(kSampleScaleInput) ==
              program.model().graph.has_input(kSampleScaleInput));
        const Differentiated all(std::move(batch.model));
        check_stages(make_stages(all.model.graph, "test", all.roots).program);
        check_stages(
            make_stages(all.model.graph, "test", all.roots, {.recompute = Recompute::kRowWise})
                .program);
      }
    }
  }
}

TEST_CASE("levels: an evaluated model has them too") {
  const GraphFacts facts{1000, 50, 7, 100, 3, 4, true};
  for (const char* name : test::kAllModels) {
    INFO(name);
    const BatchModel batch =
        batch_model(rewritten_model(options_of(name, 2), facts, Mode::kEvaluate));
    CHECK(batch.hops == 2);
    check_stages(
        make_stages(batch.model.graph, "test", {batch.model.loss, batch.model.logits}).program);
  }
}

TEST_CASE("levels: operators say what they make of them") {
  TensorGraph graph(DType::kF32);
  Tensor leaf{"x", {Space::kVertex, 0, 8, DType::kF32}};
  leaf.shape.level = 2;
  const TensorId x = graph.apply("relu", {graph.add_like(leaf)});
  CHECK(graph.shape(x).level == 2);
  const TensorId edges = graph.source(x);
  CHECK(graph.shape(edges).level == 1);
  const TensorId in = graph.gather("sum", {edges}, Direction::kIn);
  CHECK(graph.shape(in).level == 1);
  CHECK(graph.shape(graph.destination(in)).level == 1);
  CHECK(graph.shape(graph.gather("sum", {graph.destination(in)}, Direction::kOut)).level == 2);
  const TensorId first = graph.first_rows(x, 0);
  CHECK(graph.shape(first).level == 0);
  CHECK(graph.shape(graph.extend_rows(first, 1)).level == 1);
  CHECK(graph.shape(graph.apply("column_sum", {first})).level == kAllRows);
  CHECK(graph.shape(graph.source(graph.input("all", 8, DType::kF32))).level == kAllRows);
}

TEST_CASE("levels: first_rows and extend_rows pass the gradient of each other back") {
  TensorGraph graph(DType::kF32);
  Tensor leaf{"x", {Space::kVertex, 0, 8, DType::kF32}, -1, true};
  leaf.shape.level = 1;
  const TensorId x = graph.add_like(leaf);
  const TensorId far = graph.first_rows(graph.extend_rows(x, 3), 0);
  leaf.name = "dy";
  leaf.shape.level = 0;
  const Gradients gradients = add_gradients(graph, {far, graph.add_like(leaf)});
  const TensorId dx = gradients.at(x).front();
  CHECK(graph.shape(dx).level == 1);
  const auto producer = [&](TensorId id) {
    return graph.operations()[static_cast<std::size_t>(graph.tensor(id).producer)];
  };
  CHECK(producer(dx).def->name == "first_rows");
  CHECK(producer(producer(dx).inputs[0]).def->name == "extend_rows");
  CHECK(graph.shape(producer(dx).inputs[0]).level == 3);
}

namespace {

// Gradients of the parameters by name, the loss' sums first.
std::vector<std::vector<double>> results(GraphHarness& harness, Model model) {
  const Differentiated all(std::move(model));
  const GraphHarness::Result result = harness.run(all.model.graph, all.roots);
  std::vector<std::vector<double>> values{result.tensors.at(all.model.loss)};
  for (const ModelParameter& parameter : all.model.parameters) {
    if (!parameter.trainable) continue;
    std::vector<double>& sum = values.emplace_back();
    for (const TensorId part : all.gradients.at(parameter.tensor)) {
      const std::vector<double>& more = result.tensors.at(part);
      sum.resize(more.size());
      for (std::size_t i = 0; i < more.size(); ++i) sum[i] += more[i];
    }
  }
  return values;
}

void compute_precomputed(GraphHarness& harness, const Precomputed& precomputed) {
  for (const Hoisted& hoisted : precomputed.tensors) {
    const auto result = harness.run(*precomputed.graph, {hoisted.tensor});
    const std::vector<double>& values = result.tensors.at(hoisted.tensor);
    harness.add_typed<double>(hoisted.input, hoisted.cols, [&](std::int64_t v, std::int64_t c) {
      return values[static_cast<std::size_t>(v * hoisted.cols + c)];
    });
  }
}

}  // namespace

TEST_CASE("levels: on a batch that is the whole graph a model computes what it does without") {
  for (const char* name : test::kAllModels) {
    for (const bool wide : {false, true}) {
      INFO(name << (wide ? ", all options" : ""));
      GraphHarness harness(typed_graph());
      const GraphFacts facts = facts_of(harness.dataset());
      harness.add_input("features", facts.feature_cols);
      harness.add_typed<double>(kSampleScaleInput, 1, [](auto, auto) { return 1; });
      ModelOptions options = options_of(name, wide ? 3 : 2);
      if (wide && std::string(name) != "sgc") {
        options.norm = Norm::kBatch;
        options.residual = true;
        options.input_dropout = 0.2;
      }
      Model model = rewritten_model(options, facts, Mode::kTrain, DType::kF64);
      BatchModel batch = batch_model(model);
      compute_precomputed(harness, batch.precomputed);
      const auto whole = results(harness, std::move(model));
      const auto leveled = results(harness, std::move(batch.model));
      REQUIRE(whole.size() == leveled.size());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        REQUIRE(whole[i].size() == leveled[i].size());
        for (std::size_t k = 0; k < whole[i].size(); ++k) {
          INFO("result " << i << ", element " << k);
          CHECK(std::abs(whole[i][k] - leveled[i][k]) <= 1e-9 * (1 + std::abs(whole[i][k])));
        }
      }
    }
  }
}

TEST_CASE("levels: sums over sampled edges are scaled, loops aren't") {
  // What an edge computes; the last one depends on its key.
  const auto edges_of = [](TensorGraph& graph, int kind, bool loops) {
    const TensorId x = graph.input("x", 12, DType::kF64, true);
    const TensorId source = graph.source(x, loops);
    switch (kind) {
      case 0:
        return source;
      case 1:
        return graph.apply("scale_rows",
                           {source, graph.edge_input(kEdgeWeightsInput, 1, DType::kF64, loops)});
      case 2: {
        const TensorId types = graph.edge_input(kEdgeTypesInput, 1, DType::kI32, loops);
        const TensorId picked = graph.apply("pick_type", {source, types}, {.cols = 4});
        const TensorId data = graph.edge_input(kEdgeFeaturesInput, 4, DType::kF64, loops);
        const TensorId weights = graph.edge_input(kEdgeWeightsInput, 1, DType::kF64, loops);
        const TensorId both = graph.apply("sub", {picked, graph.apply("exp", {data})});
        return graph.apply("scale_rows", {both, graph.apply("exp", {weights})});
      }
      default:
        return graph.apply("edge_dropout", {source, edge_key(graph, loops)},
                           {.value = 0.3, .key = 5, .heads = 3});
    }
  };
  GraphHarness harness(typed_graph());
  harness.add_input("x", 12);
  harness.add_typed<double>(kSampleScaleInput, 1,
                            [](auto v, auto) { return 1 + 0.5 * static_cast<double>(v); });
  for (const int kind : {0, 1, 2, 3}) {
    for (const bool loops : {false, true}) {
      INFO("kind " << kind << (loops ? " with loops" : ""));
      TensorGraph plain(DType::kF64), expected(DType::kF64);
      const TensorId sum = gather_sum(plain, edges_of(plain, kind, loops));
      const TensorId sampled = gather_sum(expected, edges_of(expected, kind, false));
      const TensorId scale = expected.input(kSampleScaleInput, 1, DType::kF64);
      TensorId by_hand = expected.apply("scale_rows", {sampled, scale});
      if (loops) {
        const TensorId all = gather_sum(expected, edges_of(expected, kind, true));
        by_hand = expected.apply("add", {by_hand, expected.apply("sub", {all, sampled})});
      }
      const Rewritten scaled = scale_sampled_sums(plain);
      const auto& operations = scaled.graph.operations();
      const auto gathers = std::count_if(operations.begin(), operations.end(), [](const auto& of) {
        return of.def->dependence == Dependence::kAlongEdges;
      });
      CHECK(gathers == (loops && kind == 3 ? 2 : 1));
      const auto is = harness.run(scaled.graph, {scaled.at(sum)}).tensors.at(scaled.at(sum));
      const auto wanted = harness.run(expected, {by_hand}).tensors.at(by_hand);
      REQUIRE(is.size() == wanted.size());
      for (std::size_t i = 0; i < is.size(); ++i) {
        CHECK(std::abs(is[i] - wanted[i]) <= 1e-9 * (1 + std::abs(wanted[i])));
      }
    }
  }
}

TEST_CASE("levels: sums of weights are of the whole graph") {
  const GraphFacts facts{1000, 50, 7, 100, 0, 0, true};
  for (const char* name : {"gcn", "sgc", "resgcn", "sage"}) {
    for (const bool weighted : {false, true}) {
      INFO(name << (weighted ? " with weights" : ""));
      ModelOptions options = options_of(name, 2);
      options.edge_weights = weighted ? EdgeWeights::kUse : EdgeWeights::kIgnore;
      const BatchModel batch = batch_model(rewritten_model(options, facts, Mode::kTrain));
      const std::size_t factors = std::string(name) == "sage" ? 1 : 2;
      CHECK(batch.precomputed.tensors.size() == (weighted ? factors : 0));
      CHECK(level_of_input(batch.model.graph, kSampleScaleInput) == 1);
      for (const Hoisted& hoisted : batch.precomputed.tensors) {
        CHECK(level_of_input(batch.model.graph, hoisted.input) >= 1);
      }
    }
  }
}
