// ooc-train: trains a model on a dataset. The main path goes on in engine/train/training_run.cc and
// engine/train/trainer.cc.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "bin/cli/threads.h"
#include "bin/train_data.h"
#include "bin/train_options.h"
#include "bin/train_plan.h"
#include "bin/train_progress.h"
#include "bin/train_sampling_options.h"
#include "bin/train_scratch.h"
#include "engine/machine/dataset_io.h"
#include "engine/machine/devices.h"
#include "engine/machine/gpus.h"
#include "engine/model/build.h"
#include "engine/model/library.h"
#include "engine/model/parts/words.h"
#include "engine/train/seed_runs.h"
#include "engine/train/trainer.h"
#include "storage/base/errors.h"
#include "storage/io/trace.h"

namespace ooc {
namespace {

// runs/cora-gcn-20240131-093000, or with a number after it if that is taken.
std::string default_run_dir(const RunConfig& config) {
  std::string dataset = base_name(config.dataset);
  for (const std::string_view ending : {".ooc", ".batches"}) {
    if (dataset.ends_with(ending)) dataset.resize(dataset.size() - ending.size());
  }
  const std::string path =
      fmt::format("runs/{}-{}-{:%Y%m%d-%H%M%S}", dataset, model_title(config.model.model),
                  fmt::localtime(std::time(nullptr)));
  std::string free_path = path;
  for (int number = 2; posix_file_system().exists(free_path); ++number) {
    free_path = fmt::format("{}-{}", path, number);
  }
  return free_path;
}

// What a run is trained with, and how: nothing of it is written or allocated yet.
struct Machine {
  std::unique_ptr<BlockIo> io;
  RunBudget budget;
  std::shared_ptr<const TrainingPlan> plan;  // null: it samples
};

std::string metric_text(const nlohmann::ordered_json& value) {
  return value.is_number() ? fmt::format("{:.4f}", value.get<double>()) : "none";
}

void print_summary(const nlohmann::ordered_json& summary, bool json) {
  if (json) {
    fmt::print("{}\n", summary.dump(2));
    return;
  }
  const auto best = summary.at("metric").get<std::string>();
  const bool many = summary.contains("runs");
  const auto print = [&](const nlohmann::ordered_json& figures, const char* key, const char* name,
                         const std::string& metric, const std::string& rest) {
    std::string line = fmt::format("{} {} {}", name, metric, metric_text(figures.at(key)));
    if (many) {
      line +=
          fmt::format(" +- {} runs {}", metric_text(figures.at(std::string(key) + "_deviation")),
                      summary.at("runs").get<std::int64_t>());
    }
    fmt::print("{}{}\n", line, rest);
  };
  std::string epoch;
  if (!many) epoch = fmt::format(" epoch {}", summary.at("best_epoch").get<std::int64_t>());
  // Summaries of older versions lack them.
  const nlohmann::ordered_json metrics = summary.value("metrics", nlohmann::ordered_json());
  for (const auto& [metric, figures] : metrics.items()) {
    if (metric == best) continue;
    print(figures, "valid", "valid", metric, "");
    print(figures, "test", "test", metric, "");
  }
  print(summary, "best_valid", "best_valid", best, epoch);
  print(summary, "test", "test", best, "");
}

RunResult train_one(RunProgress& progress, RunDirectory& run, EpochTrainer& trainer) {
  spdlog::info("run directory {}", run.path());
  log_kernels(blas_core());
  RunResult result = run_training(run, trainer, &cli::stop_flag(),
                                  [&](const EpochRecord& record) { progress.show_epoch(record); });
  progress.finish();
  return result;
}

// Trains one run, or one a seed, and says what came of it.
void finish(const TrainOptions& options, RunDirectory& run,
            const std::function<RunResult(RunDirectory&)>& train_seed) {
  const bool many = run.config().runs > 1;
  const RunResult result = many ? run_seeds(posix_file_system(), run, train_seed) : train_seed(run);
  if (result.outcome == RunOutcome::kInterrupted) {
    throw Interrupted(
        fmt::format("interrupted after epoch {}{}", result.epochs, many ? " of a seed's run" : ""),
        run.path(), fmt::format("continue with ooc-train --resume {}", run.path()));
  }
  if (result.outcome == RunOutcome::kFinishedBefore) {
    spdlog::info("the run had finished already, after epoch {}", result.epochs);
  }
  print_summary(result.summary, options.json);
}

// One run's on sampled batches.
RunResult train_batches(const cli::Command& command, BlockIo& io, const Machine& machine,
                        RunDirectory& run, const TrainData& data, const std::string& scratch) {
  const Devices devices("cpu", machine.budget);
  RunProgress progress(command, run.config());
  BatchTrainerOptions options{machine.budget, scratch};
  options.on_batch = [&](std::int64_t epoch, std::int64_t done, std::int64_t batches) {
    progress.show_batch(epoch, done, batches);
  };
  options.on_wait = [&](double share) { progress.show_preparing(share); };
  const auto trainer = data.batch_trainer(devices.first(), io, run.config(), options);
  return train_one(progress, run, *trainer);
}

void show_batch_plan(const TrainOptions& options, const RunConfig& config, const Machine& machine,
                     const TrainData& data) {
  const Devices devices("cpu", machine.budget);
  const auto trainer =
      data.batch_trainer(devices.first(), *machine.io, config, {machine.budget, config.scratch});
  fmt::print("{}", options.json ? trainer->plan_json().dump(2) + "\n" : trainer->plan_text());
}

// Several runs take a trainer each, one after the other.
void train(const cli::Command& command, const TrainOptions& options, const Machine& machine,
           RunDirectory& run, const TrainData& data) {
  const ScratchDirectory scratch(run.config(), run);
  if (!machine.plan) {
    const bool maps = run.config().io == DatasetIo::kAuto && data.dataset() != nullptr &&
                      mapping_pays(*data.dataset(), machine.budget);
    const std::unique_ptr<BlockIo> mapped = maps ? make_mapped_block_io(*machine.io) : nullptr;
    finish(options, run, [&](RunDirectory& seed_run) {
      return train_batches(command, maps ? *mapped : *machine.io, machine, seed_run, data,
                           scratch.path());
    });
    return;
  }
  const Dataset& dataset = *data.dataset();
  const Devices devices(run.config().on.devices, machine.budget);
  TrainerOptions trainer_options{machine.budget};
  trainer_options.others = devices.others();
  trainer_options.plan = machine.plan;
  trainer_options.scratch = scratch.path();
  const bool maps = run.config().io == DatasetIo::kAuto &&
                    machine.plan->epoch_plan().stored_bytes == 0 &&
                    mapping_pays(dataset, machine.budget);
  const std::unique_ptr<BlockIo> mapped = maps ? make_mapped_block_io(*machine.io) : nullptr;
  std::optional<Trace> trace;
  if (!options.trace.empty()) trace.emplace(posix_file_system(), options.trace);
  std::optional<TracedBlockIo> traced;
  if (trace) traced.emplace(maps ? *mapped : *machine.io, *trace);
  trainer_options.trace = trace ? &*trace : nullptr;
  BlockIo& io = traced ? *traced : maps ? *mapped : *machine.io;
  const auto train_seed = [&](RunDirectory& seed_run) {
    Trainer trainer(devices.first(), io, dataset, seed_run.config(), trainer_options);
    RunProgress progress(command, seed_run.config());
    RunResult result = train_one(progress, seed_run, trainer);
    if (result.outcome != RunOutcome::kFinishedBefore) trainer_options.warns_of_data = false;
    return result;
  };
  finish(options, run, train_seed);
}

// What of the dataset or the options plays no part, unless that was asked for.
void warn_of_unread(const RunConfig& config, const TrainData& data) {
  if (config.patience > 0 && data.manifest().split_counts[1] == 0) {
    spdlog::warn("--patience {} ends nothing: there are no validation vertices", config.patience);
  }
  const auto unread = unread_edge_data(config.model, facts_of(data.manifest()));
  if (unread.empty()) return;
  spdlog::warn("{} does not read the {} of edges: they are not used",
               model_title(config.model.model), fmt::join(unread, " and "));
}

// Throws what a trainer would.
void check_batches(const RunConfig& config, const Machine& machine, const TrainData& data) {
  const Devices devices("cpu", machine.budget);
  data.batch_trainer(devices.first(), *machine.io, config, {machine.budget, config.scratch});
}

void check_kernels(const TrainingPlan& plan) {
  std::vector<const Program*> programs = plan.precompute().programs();
  for (const ModelProgram* program : plan.programs()) programs.push_back(&program->program());
  const std::string missing = missing_on_gpu(programs);
  if (missing.empty()) return;
  throw DeviceError(fmt::format("there is no CUDA kernel for {} yet", missing), "--devices cuda",
                    "give --devices cpu");
}

// Before anything is written: whether it can be trained in the budget, and how. A device that
// is only planned for needn't be there.
Machine machine_for(const RunConfig& config, const std::string& directory, const std::string& rates,
                    const TrainData& data) {
  Machine machine{open_io(config.io), {}, {}};
  machine.budget = budget_for(*machine.io, config, directory, rates);
  if (config.sampling.fanouts.empty()) {
    machine.plan = plan_training(*data.dataset(), config, machine.budget);
    if (config.on.plan_device.empty() && is_gpu(config.on.devices)) check_kernels(*machine.plan);
  } else {
    check_batches(config, machine, data);
  }
  warn_of_unread(config, data);
  return machine;
}

// Of a new run that doesn't say where to compute: on the first GPU that has memory and kernels for
// all of it, which the run says from then on, else on the CPU.
Machine machine_of_auto(RunConfig& config, const TrainOptions& options, const TrainData& data) {
  for (const std::string& devices : gpus_of_auto()) {
    RunConfig on_gpu = config;
    on_gpu.on.devices = devices;
    const auto warn = [&](const Error& error) {
      spdlog::warn("not computing on {}: {}", devices, error.what());
    };
    try {
      Machine machine = machine_for(on_gpu, options.run_dir, options.rates, data);
      spdlog::info("computing on {}, {}; --devices cpu computes on the CPU", devices,
                   name_of_gpu(devices));
      config = on_gpu;
      return machine;
    } catch (const DeviceError& error) {
      warn(error);
    } catch (const BudgetError& error) {
      if (config.on.device_memory != "auto") throw;
      warn(error);
    }
  }
  return machine_for(config, options.run_dir, options.rates, data);
}

void start(const cli::Command& command, TrainOptions& options) {
  RunConfig config = new_config(command, options);
  const TrainData data(options.dataset, config.verify);
  data.set_sampling(config);
  check_sampling(options, config);
  set_task(config, options, default_task(data.manifest().labels));
  check_edge_weights(config.model, facts_of(data.manifest()).edge_weights);
  if (options.run_dir.empty()) options.run_dir = default_run_dir(config);
  const bool chooses = config.on.plan_device.empty() && config.on.devices == "auto" &&
                       config.sampling.fanouts.empty();
  const Machine machine = chooses ? machine_of_auto(config, options, data)
                                  : machine_for(config, options.run_dir, options.rates, data);
  if (only_plans(options)) {
    if (!machine.plan) return show_batch_plan(options, config, machine, data);
    const GraphCounts counts = counts_of(*data.dataset(), machine.budget.plan.devices);
    return show_plan(options, config, {*machine.plan, counts, machine.budget});
  }
  RunDirectory run =
      RunDirectory::create(posix_file_system(), options.run_dir, config, options.force);
  const RunLock lock(posix_file_system(), run.path());
  train(command, options, machine, run, data);
}

// A run can be made longer, not shorter than it is.
void refuse_fewer_epochs(const TrainOptions& options, const RunConfig& config,
                         const RunDirectory& run) {
  const std::int64_t done = epochs_done(posix_file_system(), run);
  if (config.epochs == run.config().epochs || config.epochs >= done) return;
  throw UsageError(
      fmt::format("--epochs {} is less than the {} epochs already done", config.epochs, done),
      options.resume, "leave it out or give more");
}

// Of the dataset that the run was started with, as its checkpoints say, or what lies there still;
// empty where neither is there.
std::string checksum_before(const RunDirectory& run) {
  FileSystem& files = posix_file_system();
  const std::string trained_on = trained_dataset(files, run);
  if (!trained_on.empty() || !files.exists(run.config().dataset)) return trained_on;
  return TrainData(run.config().dataset, run.config().verify).checksum();
}

// The run's dataset, which may have another name than it had.
TrainData resumed_data(const RunDirectory& run, const RunConfig& config) {
  FileSystem& files = posix_file_system();
  const bool moved = config.dataset != run.config().dataset;
  if (!moved && !files.exists(config.dataset)) {
    throw DataError("the run's dataset is not there any more", config.dataset,
                    fmt::format("bring it back, or name it where it is now: "
                                "ooc-train NAME.ooc --resume {}",
                                run.path()));
  }
  TrainData data(config.dataset, config.verify);
  if (config.sampling.fanouts.empty() && data.dataset() == nullptr) {
    throw DataError("the run was trained on a dataset, there are batches now", config.dataset,
                    "bring the dataset back, or name it where it is now");
  }
  if (moved && data.checksum() != checksum_before(run)) {
    throw UsageError(fmt::format("{} is not the dataset that the run was started with ({})",
                                 config.dataset, run.config().dataset),
                     run.path(), "name that one, where it is now, or start a new run");
  }
  return data;
}

// Sums on a GPU are in another order than on the CPU, and so they are where several devices load
// what goes round a ring. `before`: the run's configuration and plan, as they were.
void warn_of_moved_run(const RunConfig& before, const nlohmann::ordered_json& plan_before,
                       const RunConfig& config, const Plan& plan) {
  if (plan_before.is_object() && plan_before.contains("epoch")) {
    const auto& epoch = plan_before["epoch"];
    const std::int64_t loaders = epoch.value("ring_loaders", std::int64_t{0});
    const std::int64_t devices = std::ssize(epoch.value("devices", nlohmann::ordered_json()));
    const bool same = loaders == plan.ring_loaders && devices == std::ssize(plan.devices);
    if (!same && std::max(loaders, plan.ring_loaders) > 1) {
      spdlog::warn(
          "{} of the run's devices read what goes round all of them, now {} do: results differ in "
          "their last bits",
          loaders, plan.ring_loaders);
    }
  }
  if (is_gpu(before.on.devices) == is_gpu(config.on.devices)) return;
  spdlog::warn("the run was computed on {}, and goes on on {}: results differ in their last bits",
               before.on.devices == "auto" ? "cpu" : before.on.devices, config.on.devices);
}

void resume(const cli::Command& command, const TrainOptions& options) {
  RunDirectory run = RunDirectory::open(posix_file_system(), options.resume);
  const RunConfig config = resumed_config(command, options, run.config());
  const TrainData data = resumed_data(run, config);
  const Machine machine = machine_for(config, run.path(), options.rates, data);
  if (only_plans(options)) {
    if (!machine.plan) return show_batch_plan(options, config, machine, data);
    const GraphCounts counts = counts_of(*data.dataset(), machine.budget.plan.devices);
    return show_plan(options, config, {*machine.plan, counts, machine.budget});
  }
  if (machine.plan) warn_of_moved_run(run.config(), run.plan(), config, machine.plan->epoch_plan());
  const RunLock lock(posix_file_system(), run.path());
  refuse_fewer_epochs(options, config, run);
  if (config != run.config()) run.set_config(config);
  train(command, options, machine, run, data);
}

void run(const cli::Command& command, TrainOptions& options) {
  if (!options.config.on.plan_device.empty() && !only_plans(options)) {
    throw UsageError("--plan-device without --plan or --simulate", "command line",
                     "a device that isn't there can only be planned for");
  }
  if (options.plan && options.simulate) {
    throw UsageError("--plan beside --simulate", "command line", "leave one of them out");
  }
  if (!options.durations.empty() && !options.simulate) {
    throw UsageError("--durations without --simulate", "command line",
                     "kernels of a run take as long as they do");
  }
  if (!options.graph.empty()) return plan_absent(command, options);
  if (options.resume.empty()) {
    if (options.dataset.empty()) {
      throw UsageError("NAME.ooc is missing", "command line",
                       "name a dataset, or --resume RUN_DIR");
    }
    start(command, options);
    return;
  }
  if (options.force || command.given("run-dir")) {
    throw UsageError(fmt::format("{} beside --resume", options.force ? "--force" : "--run-dir"),
                     "command line", "leave one of them out");
  }
  resume(command, options);
}

}  // namespace
}  // namespace ooc

int main(int argc, char** argv) {
  ooc::TrainOptions options;
  return ooc::cli::run_program(
      "ooc-train", "Trains a graph neural network on a dataset of any size, exactly.", argc, argv,
      [&](ooc::cli::Command& command) {
        ooc::add_train_options(command, options);
        command.action([&] {
          ooc::cli::stop_flag();  // from here on a signal stops in good order
          ooc::cli::run_with_threads(options.threads, [&] { ooc::run(command, options); });
        });
      });
}
