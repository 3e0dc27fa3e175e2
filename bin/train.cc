// ooc-train: trains a model on a dataset. The main path goes on in engine/training_run.cc and
// engine/trainer.cc.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <ctime>

#include "bin/cli/progress.h"
#include "bin/cli/threads.h"
#include "bin/train_options.h"
#include "engine/model_library.h"
#include "engine/seed_runs.h"
#include "kernels/cpu_backend.h"
#include "storage/byte_size.h"
#include "storage/errors.h"

namespace ooc {
namespace {

// runs/cora-gcn-20240131-093000, or with a number behind it if that is taken.
std::string default_run_dir(const RunConfig& config) {
  std::string dataset = base_name(config.dataset);
  if (dataset.ends_with(".ooc")) dataset.resize(dataset.size() - 4);
  const std::string path =
      fmt::format("runs/{}-{}-{:%Y%m%d-%H%M%S}", dataset, model_title(config.model.model),
                  fmt::localtime(std::time(nullptr)));
  std::string free_path = path;
  for (int number = 2; posix_file_system().exists(free_path); ++number) {
    free_path = fmt::format("{}-{}", path, number);
  }
  return free_path;
}

void print_plan(const Trainer& trainer, bool json) {
  if (json) {
    fmt::print("{}\n", plan_of(trainer).dump(2));
    return;
  }
  for (const auto& [name, bytes] : trainer.precomputed_bytes()) {
    fmt::print("computed once: {} {}, in memory\n", name, format_byte_size(bytes));
  }
  for (const ModelProgram* program : {&trainer.training(), &trainer.evaluation()}) {
    fmt::print("{}", plan_to_text(program->program(), program->plan()));
  }
}

std::string metric_text(const nlohmann::ordered_json& value) {
  return value.is_number() ? fmt::format("{:.4f}", value.get<double>()) : "none";
}

void print_summary(const nlohmann::ordered_json& summary, bool json) {
  if (json) {
    fmt::print("{}\n", summary.dump(2));
    return;
  }
  const auto metric = summary.at("metric").get<std::string>();
  const bool many = summary.contains("runs");
  for (const char* key : {"best_valid", "test"}) {
    std::string line = fmt::format("{} {} {}", key, metric, metric_text(summary.at(key)));
    if (many) {
      line +=
          fmt::format(" +- {} runs {}", metric_text(summary.at(std::string(key) + "_deviation")),
                      summary.at("runs").get<std::int64_t>());
    } else if (std::string_view(key) == "best_valid") {
      line += fmt::format(" epoch {}", summary.at("best_epoch").get<std::int64_t>());
    }
    fmt::print("{}\n", line);
  }
}

RunResult train_one(const cli::Command& command, RunDirectory& run, Trainer& trainer) {
  const std::int64_t epochs = run.config().epochs;
  cli::Progress progress(cli::Progress::standard_output(command.quiet()));
  std::int64_t bytes = 0;
  const auto show = [&](std::int64_t epoch, const std::string& note) {
    progress.update({"training", "epochs", static_cast<double>(epoch), static_cast<double>(epochs),
                     bytes, note});
  };
  spdlog::info("run directory {}", run.path());
  RunResult result = run_training(run, trainer, &cli::stop_flag(), [&](const EpochRecord& record) {
    bytes += record.bytes_read;
    std::string note = fmt::format("loss {:.4f}", record.loss);
    if (record.scores) note += fmt::format(", valid {:.4f}", record.scores->valid);
    show(record.epoch, note);
  });
  progress.finish();
  return result;
}

// `trainer` has the configuration of `run`; several runs take one each, one after the other.
void train(const cli::Command& command, const TrainOptions& options, RunDirectory& run,
           std::unique_ptr<Trainer> trainer, Backend& backend, const Dataset& dataset) {
  const auto train_seed = [&](RunDirectory& seed_run) {
    trainer.reset();  // before the next one takes its memory
    trainer = std::make_unique<Trainer>(backend, dataset, seed_run.config());
    return train_one(command, seed_run, *trainer);
  };
  const bool many = run.config().runs > 1;
  const RunResult result =
      many ? run_seeds(posix_file_system(), run, train_seed) : train_one(command, run, *trainer);
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

void start(const cli::Command& command, TrainOptions& options) {
  RunConfig config = new_config(command, options);
  const Dataset dataset = Dataset::open(posix_file_system(), options.dataset, config.verify);
  set_task(config, options, dataset.manifest());
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  auto trainer = std::make_unique<Trainer>(*backend, dataset, config);
  if (options.plan) {
    print_plan(*trainer, options.json);
    return;
  }
  if (options.run_dir.empty()) options.run_dir = default_run_dir(config);
  RunDirectory run =
      RunDirectory::create(posix_file_system(), options.run_dir, config, options.force);
  train(command, options, run, std::move(trainer), *backend, dataset);
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

void resume(const cli::Command& command, const TrainOptions& options) {
  RunDirectory run = RunDirectory::open(posix_file_system(), options.resume);
  const RunConfig config = resumed_config(command, options, run.config());
  const Dataset dataset = Dataset::open(posix_file_system(), config.dataset, config.verify);
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  auto trainer = std::make_unique<Trainer>(*backend, dataset, config);
  if (options.plan) {
    print_plan(*trainer, options.json);
    return;
  }
  refuse_fewer_epochs(options, config, run);
  if (config != run.config()) run.set_config(config);
  train(command, options, run, std::move(trainer), *backend, dataset);
}

void run(const cli::Command& command, TrainOptions& options) {
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
