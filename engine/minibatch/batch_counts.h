// How many labels a batch's loss is over.
#pragma once

#include "engine/batches/loaded_batch.h"
#include "engine/train/parameters.h"
#include "engine/train/run_config.h"

namespace ooc {

// Whether the loss of a batch is over anything.
inline bool has_loss(const RunConfig& config, const StepCounts& counts) {
  const bool weighs = config.model.class_weights.weigh() && config.model.task == Task::kSingle;
  return weighs ? counts.label_weights > 0 : counts.labels > 0;
}

// Of the current batch: labelled entries of seeds in the train split, and the weights of these
// where classes are weighed.
StepCounts count_labels(const RunConfig& config, const LoadedBatch& batch,
                        ParameterStore& parameters);

}  // namespace ooc
