// The same training for several seeds (RunConfig::runs): each in a run directory of its own,
// seed-<n>/ inside the run directory, and one summary.
#pragma once

#include <functional>
#include <string>

#include "engine/train/training_run.h"

namespace ooc {

// The runs of `outer`, from its seed on: those that aren't there are made, all others continued.
// `train` runs one of them to its end; after an interrupted one nothing follows. RunResult::epochs
// is of the last run, the summary as summary.json of `outer`: the metric, means and sample
// standard deviations over the runs, and each run's seed and figures. Null where a run has none.
RunResult run_seeds(FileSystem& files, RunDirectory& outer,
                    const std::function<RunResult(RunDirectory&)>& train);

// Whole epochs that a run directory's checkpoints hold; of several runs the most.
std::int64_t epochs_done(FileSystem& files, const RunDirectory& run);

// The checksum of the manifest of the dataset that they were trained on; empty while there is none.
std::string trained_dataset(FileSystem& files, const RunDirectory& run);

}  // namespace ooc
