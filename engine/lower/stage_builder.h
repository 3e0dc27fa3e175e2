// Stages for operations of which some have to sink into later ones (engine/lower/stages.cc chooses
// them).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/lower/stages.h"

namespace ooc {

struct StageRequest {
  std::vector<TensorId> roots, beside;
  StageOptions options;
  std::map<TensorId, int> not_before;  // by what an operation makes: the first stage it may be in
  std::set<TensorId> kept;  // for later stages, though these could compute it again row by row
};

// Stages are numbered as in `not_before`: the program has none that nothing is left in.
struct BuiltStages {
  StagedGraph staged;
  // By tensor: the one that makes it; of edge tensors, the first that may compute it.
  std::vector<int> stages;
  std::vector<const Operation*> operations;  // of the graph, that something asks for, in order
  // What later stages compute again though it isn't cheap.
  std::vector<TensorId> again;
};
// Nothing: edge work would have to wait, too, or there would be more stages.
std::optional<BuiltStages> build_stages(const TensorGraph& graph, const std::string& name,
                                        const StageRequest& request);

}  // namespace ooc
