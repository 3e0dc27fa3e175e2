// The options of ooc-train, and the configuration that they make of a dataset.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bin/cli/program.h"
#include "engine/train/run_config.h"

namespace ooc {

// Several options at once; one that is given wins.
enum class Recipe { kNone, kPlanetoid, kClassic };

struct TrainOptions {
  RunConfig config;
  std::string dataset;
  std::string run_dir;
  std::string resume;
  std::string graph;      // counts of a graph that isn't there
  std::string trace;      // a file for what devices do when; empty: none
  std::string durations;  // a run's metrics.jsonl to simulate with; empty: as predicted
  std::string rates;      // a file of what the machine does in a second; empty: measured
  Recipe recipe = Recipe::kNone;
  std::optional<std::int64_t> threads;
  std::optional<std::int64_t> heads;
  std::optional<Task> task;
  std::optional<Loss> loss;
  std::vector<Metric> metrics;  // empty: the task's
  std::optional<ClassWeights> class_weights;
  std::optional<ClassWeights> pos_weight;  // another name for them
  bool plan = false;
  bool simulate = false;
  bool json = false;
  bool force = false;
};

void add_train_options(cli::Command& command, TrainOptions& options);

// The configuration of a new run: the recipe's values where nothing is given, and what follows from
// the program, which it reads. The task and what follows it are still to be set.
RunConfig new_config(const cli::Command& command, const TrainOptions& options);
// As given, or as the dataset's labels ask for: the task, loss, class weights and metrics.
void set_task(RunConfig& config, const TrainOptions& options, Task of_labels);
// A run's own configuration, with what may change on resume changed. UsageError for options given
// beside it that would make it another run.
RunConfig resumed_config(const cli::Command& command, const TrainOptions& options,
                         const RunConfig& stored);

}  // namespace ooc
