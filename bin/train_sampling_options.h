// The options of sampled training.
#pragma once

#include "bin/train_options.h"

namespace ooc {

void add_sampling_options(cli::Command& command, SamplingConfig& sampling);
// UsageError where a run's don't fit each other or what else is given.
void check_sampling(const TrainOptions& options, const RunConfig& config);

}  // namespace ooc
