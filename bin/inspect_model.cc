#include "bin/inspect_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bin/cli/facts.h"
#include "engine/model/library.h"
#include "engine/model/report.h"

namespace ooc {

void add_model_options(cli::Command& command, InspectedModel& inspected) {
  ModelOptions& options = inspected.options;
  command.path("--model", inspected.model, "NAME|FILE.saga", "Show a model instead");
  command.integer("--features", inspected.facts.feature_cols, 1, "Of --model: columns of features",
                  kMaxHidden);
  command.integer("--classes", inspected.facts.classes, 1, "Of --model: classes", kMaxHidden);
  command.integer("--edge-types", inspected.facts.edge_types, 1, "Of --model: types of edges",
                  1000);
  command.integer("--edge-features", inspected.facts.edge_features, 1,
                  "Of --model: columns of features of edges", kMaxHidden);
  options.edge_weights = EdgeWeights::kIgnore;
  command.choice("--edge-weights", options.edge_weights,
                 {{"use", EdgeWeights::kUse}, {"ignore", EdgeWeights::kIgnore}},
                 "Of --model: whether neighbours count by the weights of their edges");
  command.integer("--layers,--num-layers", options.layers, 1, "Of --model: layers", kMaxLayers);
  command.integer("--hidden,--hidden-channels", options.hidden, 1,
                  "Of --model: columns of a hidden layer", kMaxHidden);
  command.integer("--heads", inspected.heads, 1, "Of --model: heads; 8 for models that have them");
}

void print_model(InspectedModel& inspected, bool json) {
  ModelOptions& options = inspected.options;
  options.model = known_model(inspected.model);
  options.program = read_program(posix_file_system(), options.model);
  options.heads =
      inspected.heads ? *inspected.heads : default_heads(options.program, options.model);
  const ModelReport report = report_model(options, inspected.facts);
  cli::Facts facts;
  facts["model"] = model_title(options.model);
  facts["features"] = inspected.facts.feature_cols;
  facts["classes"] = inspected.facts.classes;
  facts["layers"] = options.layers;
  facts["hidden"] = options.hidden;
  facts["heads"] = options.heads;
  std::int64_t count = 0;
  for (const ModelParameter& parameter : report.parameters) {
    if (parameter.trainable) count += parameter.rows * parameter.cols;
    facts["parameters"][parameter.name] = fmt::format("{} x {}{}", parameter.rows, parameter.cols,
                                                      parameter.trainable ? "" : " (not trained)");
  }
  facts["parameter_count"] = count;
  if (json) {
    facts["program"] = options.program;
    facts["steps"] = cli::Facts::array();
    for (const Snapshot& snapshot : report.snapshots) {
      facts["steps"].push_back({{"name", snapshot.name}, {"lines", snapshot.lines}});
    }
    cli::print_facts(facts, true);
    return;
  }
  fmt::print("{}\n{}", options.program, cli::facts_to_text(facts));
  for (const Snapshot& snapshot : report.snapshots) {
    fmt::print("\n{}\n", snapshot.name);
    for (const std::string& line : snapshot.lines) fmt::print("  {}\n", line);
  }
}

}  // namespace ooc
