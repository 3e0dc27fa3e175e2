// An epoch on a machine that needn't be there: the executor runs the plan's passes with storage,
// links and devices that take their time on a clock of their own and move nothing. What overlaps
// what is not predicted but done.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/training_plan.h"
#include "kernels/device/backend.h"
#include "sched/run/executor.h"
#include "storage/simulate/simulated_clock.h"

namespace ooc {

// Of an epoch after the first, with an evaluation. Without what metrics read of the logits, updates
// of the parameters, and zeros that scratch files would leave out.
struct Simulation {
  struct Pass {
    std::string name;
    PassReport report;
  };
  struct Device {
    std::string name;
    double busy = 0;       // share of the epoch in which it computes, of all its workers
    RunCounters counters;  // over its link
  };
  struct Link {
    std::string name;
    std::int64_t bytes = 0;
    double busy = 0;  // share of the epoch that these take at its rate
  };
  double seconds = 0;
  double planned_seconds = 0;  // what the plan predicts
  RunCounters counters;        // of all devices
  std::vector<Pass> passes;
  std::vector<Device> devices;
  std::vector<Link> links;  // storage's, and the topology's

  nlohmann::ordered_json json() const;
  std::string text() const;
};

// The devices of a budget: its topology's links, or one of its own for each, at the plan's rates.
std::vector<std::unique_ptr<Backend>> simulated_devices(SimulatedClock& clock,
                                                        const RunBudget& budget,
                                                        const std::string& name);

struct SimulationOptions {
  std::string name = {};  // of the devices
  // What a pass takes to compute, on all workers of all devices together; empty: as predicted.
  std::vector<double> compute_seconds = {};
  Trace* trace = nullptr;
  const std::atomic<bool>* stop = nullptr;
};
// The plan was made of the same counts and budget. Nothing: `stop` was set. RunError where the run
// comes to a stand.
std::optional<Simulation> simulate_epoch(const TrainingPlan& plan, const GraphCounts& counts,
                                         const RunBudget& budget, SimulatedClock& clock,
                                         const SimulationOptions& options);

// What the passes of this plan took to compute in the last epoch of a run's metrics.jsonl.
// DataError where the file is none, or of another plan.
std::vector<double> measured_compute(FileSystem& files, const std::string& path, const Plan& plan);

}  // namespace ooc
