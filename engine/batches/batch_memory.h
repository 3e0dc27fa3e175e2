// How the memory of a sampled run is shared out.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/batches/batch_loader.h"
#include "engine/batches/sampled_counts.h"
#include "engine/machine/run_budget.h"

namespace ooc {

// What a run takes whatever is left over, and what that is used for.
struct BatchBudget {
  std::int64_t kept_bytes = 0;   // of fixed_bytes, what stays when no batch is at hand
  std::int64_t fixed_bytes = 0;  // programs and parameters, the largest batch, tables of vertices
  BatchMemory loading;
  std::vector<BatchLimits> limits;  // by kind of batches
};

// Batches of one kind: how they are loaded, and what runs on them.
struct SampledRun {
  const BatchLoaderOptions& loading;
  const BatchExecutor& executor;
  // Of its batches: drawn at random from one of these, or from one and then the next. None: they
  // are as they come, any may be large.
  std::vector<double DegreeClass::*> seeds;
};

// As much as anything takes, where there is no limit.
BatchMemory unlimited_memory();

// What takes memory beside what is loaded.
struct BatchWork {
  // Of these one has memory at a time, whose batches are there one after the other; the next ones
  // are made meanwhile.
  std::vector<SampledRun> runs;
  std::int64_t parameter_bytes = 0;  // in all their copies
  std::int64_t own_bytes = 0;        // whatever else there is
};

// There is room for any batch that fan-outs and batch size allow, or, in a budget that has less
// than twice the least for that, for what degrees let expect and some more: where fan-outs are
// given and choices uniform. Hot rows have the memory then.
//
// BudgetError where the budget has less than the least that works, naming it. UsageError where
// batches may have too many edges.
BatchBudget share_memory(const SampledCounts& counts, const BatchWork& work,
                         const RunBudget& budget);

// The same where batches are only loaded and written, one at a time, with room for any:
// `counts.train` and `counts.judged` are seeds of the largest epoch, and all others. `seeds`: of
// which kinds.
BatchMemory share_sampling_memory(const SampledCounts& counts, const BatchLoaderOptions& loading,
                                  const std::vector<double DegreeClass::*>& seeds,
                                  const RunBudget& budget);

}  // namespace ooc
