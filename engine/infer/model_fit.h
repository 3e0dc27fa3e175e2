// Whether a trained model fits a dataset.
#pragma once

#include <vector>

#include "engine/infer/inference.h"

namespace ooc {

// The checkpoint's model, in evaluation. DataError where it doesn't fit the dataset.
Model model_for(const Dataset& dataset, const Checkpoint& checkpoint);
// The metrics to score by: those asked for, or the run's; none where the dataset has no labels of
// the model's task. DataError where some are asked for.
std::vector<Metric> metrics_for(const Dataset& dataset, const Checkpoint& checkpoint,
                                const InferenceOptions& options);
// UsageError where the output isn't one of the task.
void check_output(Output output, Task task);

}  // namespace ooc
