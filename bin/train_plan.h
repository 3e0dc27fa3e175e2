// What ooc-train does with a plan instead of training: --plan prints it, --simulate runs an epoch
// of it on devices that take their time.
#pragma once

#include <string>

#include "bin/train_options.h"
#include "engine/machine/run_budget.h"
#include "engine/train/training_plan.h"

namespace ooc {

bool only_plans(const TrainOptions& options);

// What the run may take, and what the machine does in a second where its files lie: in `directory`,
// or as the file `rates` says.
RunBudget budget_for(BlockIo& io, const RunConfig& config, const std::string& directory,
                     const std::string& rates);

// A plan, and what it was made of.
struct PlannedTraining {
  const TrainingPlan& plan;
  const GraphCounts& counts;
  const RunBudget& budget;
};
// To standard output. Interrupted: a signal came.
void show_plan(const TrainOptions& options, const RunConfig& config,
               const PlannedTraining& planned);
// The same of --graph.
void plan_absent(const cli::Command& command, const TrainOptions& options);

}  // namespace ooc
