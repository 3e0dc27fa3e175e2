// What a sampled run will do: how its memory is shared out, and what an epoch moves. It needs
// counts alone, so a graph that isn't there can be planned for, too.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/batches/batch_forecast.h"
#include "engine/batches/batch_memory.h"
#include "engine/batches/batch_programs.h"
#include "engine/machine/run_budget.h"
#include "engine/train/absent_graph.h"
#include "engine/train/epoch_trainer.h"
#include "engine/train/run_config.h"

namespace ooc {

struct BatchPlan {
  RunConfig config;
  RunBudget budget;
  SampledCounts counts;
  BatchLoaderOptions training, evaluation;  // with memory
  BatchBudget memory;

  std::int64_t batches() const { return ceil_div(counts.train, config.sampling.batch_size); }
};

// Without memory, yet. `scratch`: a directory.
BatchLoaderOptions loader_options(const ModelProgram& program, std::vector<HopSampling> hops,
                                  const SamplingConfig& sampling, const std::string& scratch);

// Prepares as many batches together as the scratch directory has room for, by budget.scratch_bytes:
// IoError where it hasn't for one. Errors of share_memory() pass through.
BatchPlan plan_batches(const RunConfig& config, const BatchPrograms& programs,
                       const BatchExecutor& training, const BatchExecutor& evaluation,
                       SampledCounts counts, const RunBudget& budget, const std::string& scratch);

// What an epoch with an evaluation moves.
struct BatchEpochForecast {
  BatchForecast training;
  std::optional<BatchForecast> evaluation;  // by samples, if there is one
  std::optional<LoadedBytes> exact;         // of one on the whole graph
  std::int64_t bytes_read = 0, bytes_written = 0;
  std::int64_t scratch = 0;  // of files, at most
  double seconds = 0;        // that moving them takes, at the machine's rates
  double bound_seconds = 0;  // with memory for all that is made
};
// `exact`: of evaluations on the whole graph; null: they sample.
BatchEpochForecast forecast_epoch(const BatchPlan& plan, const Plan* exact = nullptr);

nlohmann::ordered_json plan_to_json(const BatchPlan& plan, const BatchEpochForecast& epoch);
nlohmann::ordered_json figures_to_json(const SuperbatchFigures& of);
std::string plan_to_text(const BatchPlan& plan, const BatchEpochForecast& epoch);

// Of a graph that isn't there, which no evaluation counts for: either form.
std::string absent_batch_plan(const RunConfig& config, const AbsentGraph& graph,
                              const RunBudget& budget, bool json);

}  // namespace ooc
