// What batches read of every vertex that is computed once, over the whole graph.
#pragma once

#include <atomic>
#include <string>

#include "engine/machine/run_budget.h"
#include "engine/model/precompute.h"
#include "engine/train/graph_inputs.h"
#include "kernels/device/backend.h"

namespace ooc {

struct ComputeOnce {
  Backend& backend;
  BlockIo& io;
  const Dataset& dataset;
  const RunBudget& budget;
  const std::string& scratch;  // a directory
};

// Adds it to `inputs`. False: `stop` was set, and nothing was added. Errors of plans and of storage
// pass through.
bool compute_inputs(const Precompute& precompute, const ComputeOnce& with, GraphInputs& inputs,
                    const std::atomic<bool>* stop);

}  // namespace ooc
