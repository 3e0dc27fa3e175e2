// ooc-train: trains a model on a dataset. The main path goes on in engine/training_run.cc and
// engine/trainer.cc.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <sstream>

#include "bin/cli/program.h"
#include "bin/cli/progress.h"
#include "bin/cli/text.h"
#include "bin/cli/threads.h"
#include "engine/model_library.h"
#include "engine/model_words.h"
#include "engine/training_run.h"
#include "kernels/cpu_backend.h"
#include "storage/byte_size.h"
#include "storage/errors.h"

namespace ooc {
namespace {

struct Options {
  RunConfig config;
  std::string dataset;
  std::string run_dir;
  std::string resume;
  std::string devices = "auto";
  std::optional<std::int64_t> threads;
  std::optional<std::int64_t> heads;
  bool plan = false;
  bool json = false;
  bool force = false;
};

template <class T, std::size_t n>
std::vector<std::pair<std::string, T>> choices(const Words<T, n>& words) {
  return {words.begin(), words.end()};
}

std::string model_list() {
  std::string names;
  for (const EmbeddedModel& model : embedded_models()) names += model.name + ", ";
  return names;
}

void add_model_options(cli::Command& command, Options& options) {
  ModelOptions& model = options.config.model;
  command.path("--model", model.model, "NAME|FILE.saga",
               "The model: " + model_list() + "or a program of your own");
  command.integer("--layers,--num-layers", model.layers, 1, "Layers", kMaxLayers);
  command.integer("--hidden,--hidden-channels", model.hidden, 1, "Columns of a hidden layer",
                  kMaxHidden);
  command.integer("--heads", options.heads, 1,
                  "Heads of a layer, each of --hidden columns; 8 for models that have them");
  command.integer("--out-heads", model.out_heads, 1, "Heads of the last layer, averaged",
                  kMaxHeads);
  command.choice("--norm", model.norm, choices(kNorms), "Normalisation after each hidden layer");
  command.flag("--residual", model.residual, "Add a linear map of its input to each layer");
  command.flag("--linear-head", model.linear_head, "End with a linear layer");
  command.choice("--jumping", model.jumping, choices(kJumpings),
                 "What the linear layer at the end reads of all layers; none: the last one");
  command.choice("--activation", model.activation, choices(kActivations), "Activation of layers");
  command.choice("--aggr", model.aggr, choices(kAggregations),
                 "How models that leave it open gather neighbours, such as sage");
  command.real("--dropout", model.dropout, {0, 1, true}, "Dropout after each hidden layer");
  command.real("--input-dropout", model.input_dropout, {0, 1, true}, "Dropout on the features");
  command.real("--attn-dropout", model.attn_dropout, {0, 1, true},
               "Dropout on the weights of attention");
}

void add_training_options(cli::Command& command, RunConfig& config) {
  command.integer("--epochs", config.epochs, 1, "Epochs");
  command.real("--lr", config.lr, {}, "Learning rate of Adam");
  command.real("--weight-decay", config.weight_decay, {}, "L2 penalty on all parameters");
  command.integer("--seed", config.seed, 0, "Initialisation and dropout follow it");
  command.integer("--patience", config.patience, 0,
                  "Stop after this many evaluations without a better one; 0: never");
  command.integer("--eval-every", config.eval_every, 1, "Epochs from one evaluation to the next");
}

void add_run_options(cli::Command& command, Options& options) {
  command.choice<std::string>("--devices", options.devices, {{"auto", "auto"}, {"cpu", "cpu"}},
                              "Where to compute");
  command.integer("--threads", options.threads, 1,
                  "Threads of the CPU; as many as cores if absent");
  command.path("--run-dir", options.run_dir, "DIR",
               "Where the run goes; runs/<dataset>-<model>-<time> if absent");
  command.integer("--checkpoint-every", options.config.checkpoint_every, 1,
                  "Epochs from one checkpoint to the next");
  command.path("--resume", options.resume, "RUN_DIR", "Continue the run in RUN_DIR");
  command.choice<VerifyPolicy>("--verify", options.config.verify,
                               {{"first", VerifyPolicy::kFirst},
                                {"always", VerifyPolicy::kAlways},
                                {"never", VerifyPolicy::kNever}},
                               "When checksums are compared: on the first read of a chunk, on "
                               "every read, never");
  command.text("--rewrites", options.config.rewrites, "LIST",
               "Leave out rewrites of the model, to measure them: any of -motion, -common, -order, "
               "-hoisting, -dead, -fusion, with commas between");
  command.flag("--plan", options.plan, "Print the plan and exit");
  command.flag("--json", options.json, "Print JSON instead of text");
  command.flag("--force", options.force, "Replace a run directory that exists");
}

void add_examples(cli::Command& command) {
  command.example("Train a GCN as it is", "ooc-train cora.ooc");
  command.example("With the settings of its authors",
                  "ooc-train cora.ooc --hidden 16 --input-dropout 0.5 --weight-decay 5e-4");
  command.example("Deeper, stopping when it no longer gets better",
                  "ooc-train cora.ooc --layers 4 --norm batch --residual --patience 50");
  command.example("A graph attention network", "ooc-train cora.ooc --model gat --hidden 8");
  command.example("A network of your own", "ooc-train cora.ooc --model ./mine.saga");
  command.example("Look before you train", "ooc-train cora.ooc --hidden 256 --plan");
  command.example("Continue an interrupted run", "ooc-train --resume runs/cora-gcn");
}

// config.toml's lines by option name: what an option's value is, as text.
std::map<std::string, std::string> values_of(const RunConfig& config) {
  std::map<std::string, std::string> values;
  std::istringstream lines(to_toml(config));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find(" = ");
    values[line.substr(0, equals)] = line.substr(equals + 3);
  }
  return values;
}

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

// The program that --model names, as it is now.
void load_program(ModelOptions& model, const std::optional<std::int64_t>& heads) {
  model.program = read_program(posix_file_system(), model.model);
  model.heads = heads ? *heads : default_heads(model.program, model.model);
  check_options(model);
  if (is_program_file(model.model)) model.model = absolute(model.model);
}

// The run's own configuration, with what may change on resume changed. Options given beside it that
// would make it another run are refused.
RunConfig resumed_config(const cli::Command& command, const Options& options,
                         const RunConfig& stored) {
  RunConfig given = options.config;
  if (options.heads) given.model.heads = *options.heads;
  if (is_program_file(given.model.model)) given.model.model = absolute(given.model.model);
  if (command.given("dataset")) given.dataset = absolute(options.dataset);
  const std::map<std::string, std::string> stored_values = values_of(stored);
  for (const auto& [option, value] : values_of(given)) {
    const bool may_change = option == "epochs" || option == "verify";
    const std::string& before = stored_values.at(option);
    if (may_change || !command.given(option) || value == before) continue;
    throw UsageError(
        fmt::format("{} {} is not what the run was started with ({})", option, value, before),
        options.resume, "leave it out, or start a new run without --resume");
  }
  RunConfig config = stored;
  if (command.given("epochs")) config.epochs = given.epochs;
  if (command.given("verify")) config.verify = given.verify;
  return config;
}

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
  fmt::print("best_valid {} {} epoch {}\n", metric, metric_text(summary.at("best_valid")),
             summary.at("best_epoch").get<std::int64_t>());
  fmt::print("test {} {}\n", metric, metric_text(summary.at("test")));
}

void train(const cli::Command& command, const Options& options, RunDirectory& run,
           Trainer& trainer) {
  const std::int64_t epochs = run.config().epochs;
  cli::Progress progress(cli::Progress::standard_output(command.quiet()));
  std::int64_t bytes = 0;
  const auto show = [&](std::int64_t epoch, const std::string& note) {
    progress.update({"training", "epochs", static_cast<double>(epoch), static_cast<double>(epochs),
                     bytes, note});
  };
  spdlog::info("run directory {}", run.path());
  const RunResult result =
      run_training(run, trainer, &cli::stop_flag(), [&](const EpochRecord& record) {
        bytes += record.bytes_read;
        std::string note = fmt::format("loss {:.4f}", record.loss);
        if (record.scores) note += fmt::format(", valid {:.4f}", record.scores->valid);
        show(record.epoch, note);
      });
  progress.finish();
  if (result.outcome == RunOutcome::kInterrupted) {
    throw Interrupted(fmt::format("interrupted after epoch {}", result.epochs), run.path(),
                      fmt::format("continue with ooc-train --resume {}", run.path()));
  }
  if (result.outcome == RunOutcome::kFinishedBefore) {
    spdlog::info("the run had finished already, after epoch {}", result.epochs);
  }
  print_summary(result.summary, options.json);
}

void start(const cli::Command& command, Options& options) {
  RunConfig& config = options.config;
  config.dataset = absolute(options.dataset);
  parse_rewrites(config.rewrites);
  load_program(config.model, options.heads);
  const Dataset dataset = Dataset::open(posix_file_system(), options.dataset, config.verify);
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Trainer trainer(*backend, dataset, config);
  if (options.plan) {
    print_plan(trainer, options.json);
    return;
  }
  if (options.run_dir.empty()) options.run_dir = default_run_dir(config);
  RunDirectory run =
      RunDirectory::create(posix_file_system(), options.run_dir, config, options.force);
  train(command, options, run, trainer);
}

// A run can be made longer, not shorter than it is.
void refuse_fewer_epochs(const Options& options, const RunConfig& config, const RunDirectory& run) {
  const std::int64_t done = run.latest_checkpoint_epoch().value_or(0);
  if (config.epochs == run.config().epochs || config.epochs >= done) return;
  throw UsageError(
      fmt::format("--epochs {} is less than the {} epochs already done", config.epochs, done),
      options.resume, "leave it out or give more");
}

void resume(const cli::Command& command, const Options& options) {
  RunDirectory run = RunDirectory::open(posix_file_system(), options.resume);
  const RunConfig config = resumed_config(command, options, run.config());
  const Dataset dataset = Dataset::open(posix_file_system(), config.dataset, config.verify);
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Trainer trainer(*backend, dataset, config);
  if (options.plan) {
    print_plan(trainer, options.json);
    return;
  }
  refuse_fewer_epochs(options, config, run);
  if (config != run.config()) run.set_config(config);
  train(command, options, run, trainer);
}

void run(const cli::Command& command, Options& options) {
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
  ooc::Options options;
  return ooc::cli::run_program(
      "ooc-train", "Trains a graph neural network on a dataset of any size, exactly.", argc, argv,
      [&](ooc::cli::Command& command) {
        command.positional("NAME.ooc", "dataset", options.dataset, "the dataset to train on");
        ooc::add_model_options(command, options);
        ooc::add_training_options(command, options.config);
        ooc::add_run_options(command, options);
        ooc::add_examples(command);
        command.action([&] {
          ooc::cli::stop_flag();  // from here on a signal stops in good order
          ooc::cli::run_with_threads(options.threads, [&] { ooc::run(command, options); });
        });
      });
}
