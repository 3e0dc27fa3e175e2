// What batches compute: a model's training and evaluation, with levels.
#pragma once

#include <vector>

#include "engine/batches/batch_loader.h"
#include "engine/model/precompute.h"
#include "engine/model/program.h"
#include "engine/train/run_config.h"

namespace ooc {

struct BatchPrograms {
  ModelProgram training, evaluation;
  Precompute precompute;  // of both: inputs of the whole graph

  // UsageError where the fan-outs don't fit the model.
  BatchPrograms(const RunConfig& config, const GraphFacts& facts, DType real);
};

struct BatchProgramOptions {
  const char* name;        // for reports
  const Fanouts& fanouts;  // empty: whatever there will be
  const char* option;      // that says them, for errors
};
// Of a model. UsageError where the fan-outs don't fit it.
ModelProgram batch_program(Model model, const RunConfig& config, const Wanted& wanted,
                           const BatchProgramOptions& options);

// Of a program: what it reads, and what else a loader has to know.
void describe_inputs(const ModelProgram& program, BatchLoaderOptions& options);

// The fan-outs of a training, and of its evaluations.
std::vector<HopSampling> training_hops(const SamplingConfig& sampling);
std::vector<HopSampling> evaluation_hops(const SamplingConfig& sampling);

}  // namespace ooc
