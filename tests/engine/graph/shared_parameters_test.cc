// A parameter that several operations read: its gradient is the sum of what each gives it.
#include <cmath>

#include "engine/graph/edge_operators.h"
#include "engine/train/program_run.h"
#include "sched/plan/search/planner.h"
#include "tests/engine/graph_harness.h"

using namespace ooc;
using test::GraphHarness;
using test::TinyDataset;

namespace {

TinyDataset small_graph() {
  TinyDataset spec;
  spec.vertices = 37;
  spec.edges = test::random_edges(30, 90, 3);
  return spec;
}

// The same weights at every one of three steps, which also read their bias twice each.
Model recurrent_model(const GraphFacts& facts) {
  Model model(DType::kF64);
  TensorGraph& graph = model.graph;
  const auto parameter = [&](const std::string& name, std::int64_t rows, std::int64_t cols) {
    const TensorId tensor = graph.parameter(name, rows, cols);
    model.parameters.push_back({name, tensor, rows, cols, kGlorotUniform, true});
    return tensor;
  };
  const std::int64_t width = facts.feature_cols;
  const TensorId w = parameter("w", width, width), b = parameter("b", 1, width);
  const TensorId head = parameter("head", width, facts.classes);
  TensorId h = graph.input("features", width, DType::kF64);
  for (int step = 0; step < 3; ++step) {
    h = gather_sum(graph, graph.source(graph.apply("matmul", {h, w})));
    h = graph.apply("bias", {graph.apply("tanh", {graph.apply("bias", {h, b})}), b});
  }
  model.logits = model.embedding = graph.apply("matmul", {h, head});
  model.loss = graph.apply(
      "softmax_cross_entropy",
      {model.logits, graph.input("labels", 1, DType::kI32), graph.input("splits", 1, DType::kU8)},
      {.count = static_cast<double>(facts.train_labels)});
  return model;
}

}  // namespace

TEST_CASE("shared parameters: gradients list a reduction for each operation that reads one") {
  GraphHarness harness(small_graph());
  Model model = recurrent_model(facts_of(harness.dataset()));
  const Gradients gradients = add_gradients(model.graph, {model.loss, -1});
  CHECK(gradients.at(model.parameters[0].tensor).size() == 3);
  CHECK(gradients.at(model.parameters[1].tensor).size() == 6);
  CHECK(gradients.at(model.parameters[2].tensor).size() == 1);
}

TEST_CASE("shared parameters: their gradients agree with central differences") {
  GraphHarness harness(small_graph());
  const GraphFacts facts = facts_of(harness.dataset());
  harness.add_input("features", facts.feature_cols);
  harness.check_gradients([&](TensorGraph& graph) {
    const Model model = recurrent_model(facts);
    graph = model.graph;
    return model.loss;
  });
}

TEST_CASE("shared parameters: a program sums them, the same on every reading") {
  test::MemoryFileSystem files;
  const Dataset dataset = test::write_tiny_dataset(files, small_graph());
  const auto backend = make_cpu_backend();
  test::MemoryBlockIo io(files);
  const GraphInputs inputs(io, dataset);
  const ModelProgram program(recurrent_model(facts_of(dataset)), "shared", {.gradients = true},
                             {{.hoisting = false}});
  ParameterStore parameters(*backend, DType::kF64, program.model().parameters);
  parameters.initialise(3);
  const Plan plan = make_plan({&program.program()}, counts_of(dataset));
  ProgramRun run({*backend, io, dataset, "/", 1}, {&program}, plan, inputs, parameters);
  const auto loss = [&] {
    REQUIRE(run.run(0, {}, nullptr));
    return run.losses(0, program.model().loss)[0].loss;
  };
  loss();
  std::map<std::string, std::vector<double>> gradients;
  std::int64_t shared = 0;
  for (const ModelParameter& parameter : program.model().parameters) {
    for (int reading = 0; reading < 2; ++reading) {
      const auto* data = static_cast<const double*>(run.gradient(0, parameter));
      std::vector<double> values(data, data + parameter.rows * parameter.cols);
      if (reading == 1) CHECK(values == gradients[parameter.name]);
      gradients[parameter.name] = std::move(values);
    }
    if (parameter.name != "head") shared += parameter.rows * parameter.cols;
  }
  CHECK(program.sum_bytes() == shared * static_cast<std::int64_t>(sizeof(double)));
  for (const ModelParameter& parameter : program.model().parameters) {
    auto* values = static_cast<double*>(parameters.data(parameter.name));
    for (std::size_t i = 0; i < gradients[parameter.name].size(); ++i) {
      INFO(parameter.name << " element " << i);
      const double kept = values[i], step = 1e-5;
      values[i] = kept + step;
      const double above = loss();
      values[i] = kept - step;
      const double below = loss();
      values[i] = kept;
      CHECK(gradients[parameter.name][i] == Approx((above - below) / (2 * step)).margin(1e-8));
    }
  }
}
