// Rewrites of whole models: what training computes does not depend on which of them are made.
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/model/build.h"
#include "engine/model/library.h"
#include "tests/engine/tiny_training.h"
#include "tests/support/cases.h"

using namespace ooc;
using test::TinyDataset;

namespace {

// Directed, with all that edges may carry, in several spans and panels.
TinyDataset typed_graph() {
  TinyDataset spec;
  spec.vertices = 300;
  spec.feature_cols = 12;
  spec.edges = test::random_edges(290, 2400, 21);
  spec.edges.insert(spec.edges.end(), 2, Edge{7, 7});
  spec.edge_weights = true;
  spec.edge_types = 3;
  spec.edge_feature_cols = 4;
  spec.span_rows = 64;
  spec.panel_blocks = 4;
  return spec;
}

std::vector<double> losses_of(const TinyDataset& spec, const RunConfig& config, DType real) {
  test::TinyTraining training(spec);
  TrainerOptions options;
  options.real = real;
  options.budget.plan.span_group = 2;
  Trainer& trainer = training.start(config, options);
  std::vector<double> losses;
  for (std::int64_t i = 0; i < 2; ++i) {
    const EpochRecord record = trainer.run_epoch(nullptr).value();
    losses.push_back(record.loss);
    losses.push_back(record.valid_loss);
  }
  return losses;
}

// `relative`: of fp32 and of fp64 runs.
void check_rewrites(const ModelOptions& model, double relative_f32, double relative_f64,
                    test::Cases& cases) {
  const TinyDataset spec = typed_graph();
  RunConfig config;
  config.model = model;
  for (const DType real : {DType::kF32, DType::kF64}) {
    config.rewrites.clear();
    const std::vector<double> all = losses_of(spec, config, real);
    for (const char* without : {"-motion", "-common", "-order", "-hoisting", "-dead", "-fusion",
                                "-motion,-common,-order,-hoisting,-dead,-fusion"}) {
      if (!cases.next()) continue;
      INFO(model.model << " " << without << (real == DType::kF32 ? ", fp32" : ", fp64"));
      config.rewrites = without;
      const std::vector<double> losses = losses_of(spec, config, real);
      const double limit = real == DType::kF32 ? relative_f32 : relative_f64;
      for (std::size_t i = 0; i < all.size(); ++i) {
        INFO("value " << i << ": " << losses[i] << " and " << all[i]);
        CHECK(std::abs(losses[i] - all[i]) <= limit * std::abs(all[i]));
      }
    }
  }
}

struct TestProgram {
  const char* name;
  const char* text;
};

// What the models of ooc don't do.
constexpr TestProgram kPrograms[] = {{"plain layers before a gated one", R"(
layer smooth(in, out) {
  gather mean with loops
  vertex { return accum }
}
layer gated(in, out) {
  param target_gate[in, in], source_gate[in, in], weight[in, out], bias[out]
  edge {
    gate = sigmoid(dst @ target_gate + src @ source_gate)
    return gate * src
  }
  gather sum
  vertex { return act(accum @ weight + bias) }
}
model {
  stack smooth times 2 plain
  stack gated
}
)"},
                                     {"edge weights with and without loops", R"(
layer weighted(in, out) {
  param weight[in, out], bias[out]
  edge   { return data.weight * src }
  gather sum with loops
  vertex { return act(accum @ weight + bias) }
}
layer bare(in, out) {
  param weight[in, out], bias[out]
  edge   { return data.weight * src }
  gather sum
  vertex { return act(accum @ weight + bias) }
}
model {
  stack weighted times 1
  stack bare times 1
  stack weighted times 1
  head linear
}
)"},
                                     {"the same weights summed with and without loops", R"(
layer weighted(in, out) {
  edge   { return data.weight * src }
  gather sum with loops
  vertex { return accum }
}
layer bare(in, out) {
  edge   { return data.weight * src }
  gather sum
  vertex { return accum }
}
model {
  stack weighted times 1 plain
  stack bare times 1 plain
  head linear
}
)"},
                                     {"weights of gathers of every kind", R"(
layer weighted(in, out) {
  param weight[in, out], own[in, out], bias[out]
  z = vertex.out_factor * (vertex @ weight)
  edge   { return src.z }
  gather sum with loops and weights
  vertex { return act(vertex.in_factor * accum + vertex @ own + bias) }
}
layer average(in, out) {
  param weight[in, out]
  gather mean with weights
  vertex { return act(accum @ weight) }
}
layer extreme(in, out) {
  param weight[in, out]
  gather min with weights
  vertex { return act(accum @ weight) }
}
model {
  stack weighted times 1
  stack average times 1
  stack extreme times 1
  head linear
}
)"},
                                     {"a gate of one column", R"(
layer narrow(in, out) {
  param gate[in, 1], other[in, 1], weight[in, out], bias[out]
  edge   { return sigmoid(src @ gate + dst @ other) * (src @ weight) }
  gather mean
  vertex { return act(accum + bias) }
}
)"},
                                     {"accum read twice", R"(
layer twice(in, out) {
  param first[in, out], second[in, out], bias[out]
  gather mean
  vertex { return act(accum @ first + (accum * accum) @ second + bias) }
}
)"},
                                     {"edge dropout of a smoothed input", R"(
layer smooth(in, out) {
  gather mean
  vertex { return accum }
}
layer dropped(in, out) {
  param weight[in, out], bias[out]
  edge   { return edge_dropout(src, attn_dropout) }
  gather sum
  vertex { return act(accum @ weight + bias) }
}
model {
  stack smooth times 1 plain
  stack dropped
}
)"},
                                     {"all that edges carry", R"(
layer carried(in, out) {
  param message[in, types * out], feature[edge_features, out], own[in, out], bias[out]
  edge   { return data.weight * pick_type(src @ message, data.type) + data @ feature }
  gather max
  vertex { return act(vertex @ own + accum + bias) }
}
)"}};

ModelOptions options_of(const std::string& name, const std::string& program) {
  ModelOptions options;
  options.model = name;
  options.program = program;
  options.hidden = 10;
  options.layers = 2;
  options.input_dropout = 0.2;
  if (program.find("attn_dropout") != std::string::npos) options.attn_dropout = 0.3;
  if (program.find("heads") != std::string::npos) options.heads = 3;
  if (name != "mine.saga") options.edge_weights = EdgeWeights::kIgnore;
  return options;
}

}  // namespace

TEST_CASE("rewrites: every model trains the same with each of them left out") {
  test::Cases cases(4);
  for (const auto& [name, program] : embedded_models()) {
    for (const double input_dropout : {0.0, 0.2}) {
      ModelOptions options = options_of(name, program);
      options.input_dropout = input_dropout;
      if (input_dropout > 0) {
        options.layers = 3;
        options.edge_weights = EdgeWeights::kAuto;
      }
      check_rewrites(options, 2e-4, 1e-9, cases);
    }
  }
}

TEST_CASE("rewrites: programs that mix what models don't train the same") {
  test::Cases cases(4);
  for (const TestProgram& program : kPrograms) {
    for (const double input_dropout : {0.0, 0.2}) {
      ModelOptions options = options_of("mine.saga", program.text);
      options.input_dropout = input_dropout;
      INFO(program.name);
      check_rewrites(options, 2e-4, 1e-9, cases);
    }
  }
}
