// How the memory of a sampled run is shared out.
#pragma once

#include <cstdint>

#include "engine/machine/run_budget.h"
#include "engine/minibatch/batch_loader.h"
#include "engine/minibatch/batch_programs.h"

namespace ooc {

// What a run takes whatever is left over, and what that is used for.
struct BatchBudget {
  std::int64_t fixed_bytes = 0;  // programs and parameters, the largest batch, tables of vertices
  BatchMemory loading;
};

// Batches of one kind: how they are loaded, and what runs on them.
struct SampledRun {
  const BatchLoaderOptions& loading;
  const BatchExecutor& executor;
};

// BudgetError where the budget has less than the least that works, naming it. UsageError where
// batches may have too many edges.
BatchBudget share_memory(const Dataset& dataset, const BatchPrograms& programs,
                         const SampledRun& training, const SampledRun& evaluation,
                         const GraphInputs& inputs, const RunBudget& budget);

}  // namespace ooc
