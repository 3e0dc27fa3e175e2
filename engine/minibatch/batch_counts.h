// How many labels a batch's loss is over.
#pragma once

#include "engine/minibatch/loaded_batch.h"
#include "engine/train/parameters.h"
#include "engine/train/run_config.h"

namespace ooc {

// Of the current batch: labelled entries of seeds in the train split, and the weights of these
// where classes are weighed.
StepCounts count_labels(const RunConfig& config, const LoadedBatch& batch,
                        ParameterStore& parameters);

}  // namespace ooc
