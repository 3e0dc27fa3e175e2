#include "engine/model/report.h"

#include <fmt/format.h>

#include "engine/graph/operators.h"
#include "engine/model/build.h"
#include "engine/model/program.h"

namespace ooc {
namespace {

std::string shape_text(const TensorShape& shape) {
  switch (shape.space) {
    case Space::kVertex:
      return fmt::format("[V, {}]", shape.cols);
    case Space::kEdge:
      return fmt::format("[E, {}]", shape.cols);
    case Space::kParameter:
    case Space::kReduction:
      break;
  }
  return fmt::format("[{}, {}]", shape.rows, shape.cols);
}

// A line an operator: "layer1.accum = gather_sum(source.7) [V, 16]".
std::vector<std::string> graph_lines(const TensorGraph& graph) {
  std::vector<std::string> lines;
  for (const Operation& operation : graph.operations()) {
    std::string inputs;
    for (const TensorId input : operation.inputs) {
      inputs += (inputs.empty() ? "" : ", ") + graph.tensor(input).name;
    }
    const Tensor& output = graph.tensor(operation.output);
    lines.push_back(fmt::format("{} = {}({}) {}", output.name, operation.def->name, inputs,
                                shape_text(output.shape)));
  }
  return lines;
}

std::string steps_text(const std::vector<RowStep>& steps) {
  std::string text;
  for (const RowStep& step : steps) text += " " + step.op;
  return text;
}

std::vector<std::string> stage_lines(const Program& program) {
  std::vector<std::string> lines;
  for (const Stage& stage : program.stages) {
    std::string line = "rows:";
    if (stage.propagation) {
      const Propagation& work = *stage.propagation;
      line = fmt::format("{}-edges{}:", work.direction == Direction::kIn ? "in" : "out",
                         work.loops ? " and loops" : "");
      if (!work.steps.empty()) line += fmt::format(" [{} ]", steps_text(work.steps));
      for (const EdgeFold& fold : work.folds) {
        const auto name = [&](ValueId id) {
          return program.values[static_cast<std::size_t>(id)].name;
        };
        if (fold.fold == Fold::kSum && fold.inputs.size() > 1) {
          line += " times " + name(fold.inputs[1]);
        }
        line += " -> " + name(fold.accumulators[0]);
      }
      if (!stage.steps.empty()) line += "; rows:";
    }
    lines.push_back(line + steps_text(stage.steps));
  }
  return lines;
}

}  // namespace

ModelReport report_model(const ModelOptions& options, const GraphFacts& facts) {
  const Model model = build_model(options, facts, Mode::kTrain, DType::kF32);
  ModelReport report;
  report.parameters = model.parameters;
  report.snapshots.push_back({"operators", graph_lines(model.graph)});
  Precomputed once;
  rewrite_model(model, {}, once, [&](const std::string& name, const Model& now) {
    report.snapshots.push_back({"operators after " + name, graph_lines(now.graph)});
  });
  const ModelProgram program(model, "training", {.gradients = true});
  report.snapshots.push_back({"operators with gradients", graph_lines(program.model().graph)});
  report.snapshots.push_back({"stages", stage_lines(program.program())});
  return report;
}

}  // namespace ooc
