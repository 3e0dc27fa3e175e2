// What a program becomes, for people: its operators as they are written, after each rewrite
// (engine/rewrite/rewrites.h) and with gradients, and the stages they run in.
#pragma once

#include <string>
#include <vector>

#include "engine/model/parts/model.h"

namespace ooc {

struct Snapshot {
  std::string name;                // what has just been done: "gradients"
  std::vector<std::string> lines;  // the graph or the stages then
};

struct ModelReport {
  std::vector<ModelParameter> parameters;
  std::vector<Snapshot> snapshots;  // in order, from the layers to the stages of a training run
};

// As build_model; of a training run.
ModelReport report_model(const ModelOptions& options, const GraphFacts& facts);

}  // namespace ooc
