#include "bin/train_plan.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "bin/cli/own_scratch.h"
#include "bin/train_sampling_options.h"
#include "bin/train_scratch.h"
#include "engine/batches/batch_plan.h"
#include "engine/machine/dataset_io.h"
#include "engine/machine/devices.h"
#include "engine/model/build.h"
#include "engine/train/absent_graph.h"
#include "engine/train/simulation.h"
#include "storage/base/errors.h"
#include "storage/io/trace.h"

namespace ooc {
namespace {

void print_plan(const TrainingPlan& plan, bool json) {
  if (json) {
    fmt::print("{}\n", plan.json().dump(2));
  } else {
    fmt::print("{}", plan.text());
  }
}

void simulate(const TrainOptions& options, const std::string& devices,
              const PlannedTraining& planned) {
  SimulatedClock clock;
  SimulationOptions how;
  how.name = devices;
  how.stop = &cli::stop_flag();
  if (!options.durations.empty()) {
    how.compute_seconds =
        measured_compute(posix_file_system(), options.durations, planned.plan.epoch_plan());
  }
  std::optional<Trace> trace;
  if (!options.trace.empty()) trace.emplace(posix_file_system(), options.trace, clock);
  how.trace = trace ? &*trace : nullptr;
  const std::optional<Simulation> epoch =
      simulate_epoch(planned.plan, planned.counts, planned.budget, clock, how);
  if (!epoch) throw Interrupted("interrupted", "the simulation", "run it again");
  if (options.json) {
    fmt::print("{}\n", epoch->json().dump(2));
  } else {
    fmt::print("{}", epoch->text());
  }
}

std::string name_of_devices(const RunConfig& config) {
  if (!config.on.plan_device.empty()) return config.on.plan_device;
  return config.on.devices == "auto" ? "cpu" : config.on.devices;
}

}  // namespace

bool only_plans(const TrainOptions& options) { return options.plan || options.simulate; }

RunBudget budget_for(BlockIo& io, const RunConfig& config, const std::string& directory,
                     const std::string& rates) {
  RunBudget budget =
      measured_budget(io, config.on, config.scratch.empty() ? directory : config.scratch, rates);
  budget.resident_bytes += mapped_slack_bytes(config.io);
  // What a killed run left there is gone before anything is written.
  const std::string scratch = scratch_path(config, directory);
  budget.scratch_bytes = cli::free_disk_bytes(scratch);
  if (has_own_scratch(config)) budget.scratch_bytes += cli::disk_bytes_of(scratch);
  budget.plan.stop = &cli::stop_flag();
  return budget;
}

void show_plan(const TrainOptions& options, const RunConfig& config,
               const PlannedTraining& planned) {
  if (options.plan) return print_plan(planned.plan, options.json);
  simulate(options, name_of_devices(config), planned);
}

void plan_absent(const cli::Command& command, const TrainOptions& options) {
  if (!only_plans(options) || !options.dataset.empty()) {
    throw UsageError(
        only_plans(options) ? "--graph beside a dataset" : "--graph without --plan or --simulate",
        "command line", "a graph that isn't there can only be planned for");
  }
  RunConfig config = new_config(command, options);
  check_sampling(options, config);
  const AbsentGraph graph = absent_graph(options.graph, options.task);
  set_task(config, options, default_task(graph.labels));
  check_config(config, graph.labels, graph.facts.classes, "--graph");
  check_edge_weights(config.model, graph.facts.edge_weights);
  const std::unique_ptr<BlockIo> io = make_block_io();
  RunBudget budget = budget_for(*io, config, ".", options.rates);
  budget.scratch_bytes = RunBudget().scratch_bytes;  // on whichever machine
  if (!config.sampling.fanouts.empty()) {
    fmt::print("{}", absent_batch_plan(config, graph, budget, options.json));
    return;
  }
  const TrainingPlan plan(config, graph.facts, graph.counts, DType::kF32, budget);
  show_plan(options, config, {plan, graph.counts, budget});
}

}  // namespace ooc
