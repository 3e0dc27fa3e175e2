#include "bin/train_options.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "bin/cli/devices.h"
#include "bin/cli/metric_option.h"
#include "bin/train_sampling_options.h"
#include "engine/machine/gpus.h"
#include "engine/model/build.h"
#include "engine/model/library.h"
#include "engine/rewrite/rewrites.h"
#include "engine/train/config_words.h"
#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"

namespace ooc {
namespace {

template <class T, std::size_t n>
std::vector<std::pair<std::string, T>> choices(const Words<T, n>& words) {
  return {words.begin(), words.end()};
}

std::string model_list() {
  std::string names;
  for (const EmbeddedModel& model : embedded_models()) names += model.name + ", ";
  return names;
}

// Ample, and no sum of them overflows.
constexpr std::int64_t kMaxSeed = std::int64_t{1} << 62;
constexpr std::int64_t kMaxRuns = 10000;

void add_model_options(cli::Command& command, TrainOptions& options) {
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
                 "How models that leave it open gather neighbours, such as sage; its max is a "
                 "max-pooling (sage_pool)");
  command.choice(
      "--edge-weights", model.edge_weights, choices(kEdgeWeightUses),
      "Whether neighbours count by the weights of their edges; auto: where the dataset has weights "
      "and the model takes them");
  command.real("--dropout", model.dropout, {0, 1, true}, "Dropout after each hidden layer");
  command.real("--input-dropout", model.input_dropout, {0, 1, true}, "Dropout on the features");
  command.real("--attn-dropout", model.attn_dropout, {0, 1, true},
               "Dropout on the weights of attention");
}

// Other words for the same, in other libraries.
constexpr Words<Task, 2> kTaskSynonyms{
    {{"multiclass", Task::kSingle}, {"multilabel", Task::kMultiLabel}}};
// Without a default of its own: what holds without it depends on the dataset.
template <class T, std::size_t n>
std::vector<std::pair<std::string, std::optional<T>>> optional_choices(const Words<T, n>& words) {
  return {words.begin(), words.end()};
}

void add_weights_option(cli::Command& command, const char* name,
                        std::optional<ClassWeights>& weights, const std::string& description) {
  command.parsed(name, "none|balanced|W,W,...",
                 "none, balanced, or numbers from 0 on with commas between", description,
                 [&weights](const std::string& text) {
                   weights = parse_class_weights(text);
                   return weights.has_value();
                 });
}

void add_task_options(cli::Command& command, TrainOptions& options) {
  command.choice("--task", options.task, optional_choices(kTasks),
                 "What to learn; if absent what the labels are: single, multi-label, regression. "
                 "binary: two classes with one logit",
                 optional_choices(kTaskSynonyms));
  command.choice("--loss", options.loss, optional_choices(kLosses),
                 "What training makes small; if absent cross-entropy for classes, mse for values");
  cli::add_metric_option(
      command, options.metrics,
      "What is reported; the first one picks the best epoch. If absent accuracy for "
      "single, micro_f1 for multi-label, rocauc for binary, rmse for regression");
  add_weights_option(
      command, "--class-weights", options.class_weights,
      "What a class counts in the loss, in the order of the classes; of multi-label and binary "
      "what a 1 counts against a 0, as --pos-weight. balanced: every class counts the same");
  add_weights_option(command, "--pos-weight", options.pos_weight,
                     "--class-weights of multi-label and binary");
}

void add_training_options(cli::Command& command, TrainOptions& options) {
  RunConfig& config = options.config;
  command.choice("--recipe", options.recipe,
                 {{"planetoid", Recipe::kPlanetoid}, {"classic", Recipe::kClassic}},
                 "Values for options that are not given. planetoid: hidden 16, dropout and "
                 "input-dropout 0.5, weight-decay 5e-4. classic: layers 3, hidden 256, residual, "
                 "norm layer, linear-head");
  command.integer("--epochs", config.epochs, 1, "Epochs");
  command.real("--lr", config.lr, {}, "Learning rate of the first epoch");
  command.choice("--lr-schedule", config.lr_schedule, choices(kLrSchedules),
                 "cosine: falls to 0 in the last epoch; step: a tenth after half of the epochs, a "
                 "hundredth after three quarters");
  command.choice("--optimizer", config.optimizer, choices(kOptimizers), "How parameters move");
  command.real("--momentum", config.momentum, {0, 1, true}, "Of --optimizer sgd");
  command.real("--weight-decay", config.weight_decay, {},
               "L2 penalty on all parameters; with adamw apart from the gradient");
  command.integer("--seed", config.seed, 0, "Initialisation and dropout follow it", kMaxSeed);
  command.integer("--runs", config.runs, 1,
                  "Train as often, with seeds from --seed on, and report mean and deviation",
                  kMaxRuns);
  command.integer("--patience", config.patience, 0,
                  "Stop after this many evaluations without a better one; 0: never");
  command.integer("--eval-every", config.eval_every, 1, "Epochs from one evaluation to the next");
}

void add_run_options(cli::Command& command, TrainOptions& options) {
  cli::add_device_options(command, options.config.on);
  command.integer("--threads", options.threads, 1,
                  "Threads of the CPU; as many as cores if absent");
  command.size_or_auto("--host-memory", options.config.on.host_memory,
                       "All the memory the process may take; auto: what the machine and its limits "
                       "leave it");
  command.choice("--cache-policy", options.config.cache_policy, choices(kStrategies),
                 "What stays in memory between passes: nothing; what was used last; whole tensors, "
                 "by dynamic programming (ROC); parts of tensors, by linear programming");
  command.directory("--scratch", options.config.scratch,
                    "Where tensors go that don't fit memory; the run directory if absent");
  cli::add_io_option(command, options.config.io);
  command.output("--run-dir", options.run_dir, "DIR",
                 "Where the run goes; runs/<dataset>-<model>-<time> if absent");
  command.integer("--checkpoint-every", options.config.checkpoint_every, 1,
                  "Epochs from one checkpoint to the next");
  command.integer("--checkpoint-batches", options.config.checkpoint_batches, 1,
                  "With --fanouts: batches from one checkpoint inside an epoch to the next");
  command.path("--resume", options.resume, "RUN_DIR", "Continue the run in RUN_DIR");
  command.choice<VerifyPolicy>("--verify", options.config.verify,
                               {{"first", VerifyPolicy::kFirst},
                                {"always", VerifyPolicy::kAlways},
                                {"never", VerifyPolicy::kNever}},
                               "When checksums are compared: on the first read of a chunk, on "
                               "every read, never");
  command.parsed("--rewrites", "LIST", "text",
                 "Leave out rewrites of the model, to measure them: any of -motion, -common, "
                 "-order, -hoisting, -dead, -fusion, -zeros, with commas between",
                 [&options](const std::string& list) {
                   parse_rewrites(list);
                   options.config.rewrites = list;
                   return true;
                 });
  command.flag("--plan", options.plan, "Print the plan and exit");
  command.flag("--simulate", options.simulate,
               "Don't train: run an epoch's transfers and kernels on a clock of its own, as the "
               "plan, the links and the rates have them, and print what takes how long");
  command.parsed(
      "--graph", "COUNTS", "text",
      "With --plan or --simulate, and without a dataset: for a graph of vertices=N,edges=N,"
      "features=N,classes=N; also train=N, feature-bytes=2, block-rows=N, edge-types=N, "
      "edge-features=N, edge-weights=1, symmetric=1, multi-label=1. K, M and G are "
      "powers of 1000",
      [&options](const std::string& counts) {
        options.graph = counts;
        return true;
      });
  command.parsed("--plan-device", "GPU", "h100, h200, a100 or l4",
                 "With --plan or --simulate: for a GPU that needn't be there, by what its maker "
                 "says of it; for several, with --devices cuda:0,1",
                 [&options](const std::string& text) {
                   for (const GpuModel& gpu : gpu_models()) {
                     if (text == gpu.word) options.config.on.plan_device = text;
                   }
                   return options.config.on.plan_device == text;
                 });
  command.path(
      "--trace", options.trace, "FILE.json",
      "Write what devices compute and move when, for chrome://tracing or Perfetto: some MB "
      "an epoch, so of few epochs");
  command.path("--rates", options.rates, "FILE",
               "Plan and simulate by what FILE says that the machine does in a second, as kept in "
               "~/.cache/ooc; measured if absent");
  command.path("--durations", options.durations, "FILE",
               "With --simulate: kernels take as long as in the last epoch of FILE, the "
               "metrics.jsonl of a run of the same plan; as predicted if absent");
  command.flag("--json", options.json, "Print JSON instead of text");
  command.flag("--force", options.force, "Replace a run directory that exists");
}

void add_examples(cli::Command& command) {
  command.example("Train a GCN as it is", "ooc-train cora.ooc");
  command.example("With the settings of its authors, ten times",
                  "ooc-train cora.ooc --recipe planetoid --runs 10");
  command.example("Deeper, stopping when it no longer gets better",
                  "ooc-train cora.ooc --layers 4 --norm batch --residual --patience 50");
  command.example("A graph attention network", "ooc-train cora.ooc --model gat --hidden 8");
  command.example("Classes of unequal size, judged evenly",
                  "ooc-train cora.ooc --class-weights balanced --metric macro_f1");
  command.example("Values instead of classes, judged in three ways",
                  "ooc-train prices.ooc --loss huber --metric mae,rmse,r2");
  command.example("A network of your own", "ooc-train cora.ooc --model ./mine.saga");
  command.example("Look before you train", "ooc-train cora.ooc --hidden 256 --plan");
  command.example("On a GPU that you may buy",
                  "ooc-train cora.ooc --plan --plan-device h100 --device-memory 4GiB");
  command.example("In 4 GiB of memory, whatever the graph's size",
                  "ooc-train papers.ooc --host-memory 4GiB --scratch /fast/disk");
  command.example("On sampled neighbours, in batches",
                  "ooc-train papers.ooc --model sage --fanouts 25,10 --batch-size 1000");
  command.example("What a graph would take that isn't there yet",
                  "ooc-train --plan --graph vertices=50M,edges=1.5G,features=128,classes=64");
  command.example("Continue an interrupted run", "ooc-train --resume runs/cora-gcn");
}

// What no result depends on but in its last bits, by the order of sums on other devices; and the
// number of epochs.
// The dataset's name may, its contents may not.
const std::set<std::string> kMayChange{
    "dataset",          "epochs",  "verify",        "scratch",   "host-memory",
    "cache-policy",     "devices", "device-memory", "link-rate", "io",
    "device-partition", "ring",    "topology"};

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

// What --class-weights says, under either name.
ClassWeights given_weights(const TrainOptions& options) {
  // A run's own configuration says none.
  if (options.class_weights && options.class_weights->weigh() && options.pos_weight) {
    throw UsageError("both --class-weights and --pos-weight", "command line", "give one of them");
  }
  const ClassWeights weights = options.class_weights.value_or(ClassWeights{});
  return options.pos_weight.value_or(weights);
}

void apply_recipe(const cli::Command& command, Recipe recipe, ModelOptions& model,
                  double& weight_decay) {
  const auto set = [&](const char* option, auto& member, auto value) {
    if (!command.given(option)) member = value;
  };
  if (recipe == Recipe::kPlanetoid) {  // Kipf and Welling 2017, §5.2
    set("hidden", model.hidden, 16);
    set("dropout", model.dropout, 0.5);
    set("input-dropout", model.input_dropout, 0.5);
    set("weight-decay", weight_decay, 5e-4);
  }
  if (recipe == Recipe::kClassic) {  // Luo et al. 2024
    set("layers", model.layers, 3);
    set("hidden", model.hidden, 256);
    set("residual", model.residual, true);
    set("norm", model.norm, Norm::kLayer);
    set("linear-head", model.linear_head, true);
  }
}

}  // namespace

void add_train_options(cli::Command& command, TrainOptions& options) {
  command.positional("NAME.ooc", "dataset", options.dataset, "the dataset to train on");
  add_model_options(command, options);
  add_task_options(command, options);
  add_training_options(command, options);
  add_sampling_options(command, options.config.sampling);
  add_run_options(command, options);
  add_examples(command);
}

RunConfig new_config(const cli::Command& command, const TrainOptions& options) {
  RunConfig config = options.config;
  ModelOptions& model = config.model;
  if (!options.dataset.empty()) config.dataset = absolute(options.dataset);
  if (!config.scratch.empty()) config.scratch = absolute(config.scratch);
  if (!config.on.topology.empty()) config.on.topology = absolute(config.on.topology);
  apply_recipe(command, options.recipe, model, config.weight_decay);
  model.model = known_model(model.model);
  choose_pooling(model);
  model.program = read_program(posix_file_system(), model.model);
  model.heads = options.heads ? *options.heads : default_heads(model.program, model.model);
  check_options(model);
  if (is_program_file(model.model)) model.model = absolute(model.model);
  return config;
}

void set_task(RunConfig& config, const TrainOptions& options, Task of_labels) {
  const Task task = config.model.task = options.task.value_or(of_labels);
  config.model.loss = options.loss.value_or(default_loss(task));
  config.model.class_weights = given_weights(options);
  config.metrics = options.metrics;
  if (config.metrics.empty()) config.metrics = {default_metric(task)};
  if (!options.pos_weight || (task != Task::kSingle && task != Task::kRegression)) return;
  throw UsageError(fmt::format("--pos-weight does not fit --task {}", word_of(kTasks, task)),
                   "it weighs labels of 1",
                   task == Task::kSingle ? "give --class-weights" : "leave it out");
}

RunConfig resumed_config(const cli::Command& command, const TrainOptions& options,
                         const RunConfig& stored) {
  RunConfig given = options.config;
  given.model.model = known_model(given.model.model);
  choose_pooling(given.model);
  if (options.heads) given.model.heads = *options.heads;
  // Runs of before say what became of the weights where nothing was asked.
  EdgeWeights& weights = given.model.edge_weights;
  if (weights == EdgeWeights::kAuto) weights = stored.model.edge_weights;
  if (options.task) given.model.task = *options.task;
  if (options.loss) given.model.loss = *options.loss;
  if (!options.metrics.empty()) given.metrics = options.metrics;
  given.model.class_weights = given_weights(options);
  if (is_program_file(given.model.model)) given.model.model = absolute(given.model.model);
  if (command.given("dataset")) given.dataset = absolute(options.dataset);
  if (!given.scratch.empty()) given.scratch = absolute(given.scratch);
  if (!given.on.topology.empty()) given.on.topology = absolute(given.on.topology);
  if (options.recipe != Recipe::kNone) {
    throw UsageError("--recipe beside --resume", options.resume, "leave one of them out");
  }
  const std::map<std::string, std::string> stored_values = values_of(stored);
  for (const auto& [option, value] : values_of(given)) {
    const bool may_change = kMayChange.contains(option);
    const std::string& before = stored_values.at(option);
    const bool is_given =
        command.given(option) || (option == "class-weights" && command.given("pos-weight"));
    if (may_change || !is_given || value == before) continue;
    throw UsageError(
        fmt::format("{} {} is not what the run was started with ({})", option, value, before),
        options.resume, "leave it out, or start a new run without --resume");
  }
  RunConfig config = stored;
  if (command.given("epochs") && given.epochs != stored.epochs &&
      stored.lr_schedule != LrSchedule::kConstant) {
    throw UsageError(fmt::format("--epochs {} with --lr-schedule {}", given.epochs,
                                 word_of(kLrSchedules, stored.lr_schedule)),
                     options.resume, "its rates depend on the epochs: start a new run");
  }
  if (command.given("dataset")) config.dataset = given.dataset;
  if (command.given("epochs")) config.epochs = given.epochs;
  if (command.given("verify")) config.verify = given.verify;
  // auto leaves a run where it is.
  if (command.given("devices") && (given.on.devices != "auto" || !is_gpu(stored.on.devices))) {
    config.on.devices = given.on.devices;
  }
  config.on.plan_device = given.on.plan_device;
  if (command.given("host-memory")) config.on.host_memory = given.on.host_memory;
  if (command.given("device-memory")) config.on.device_memory = given.on.device_memory;
  if (command.given("link-rate")) config.on.link_rate = given.on.link_rate;
  if (command.given("device-partition")) config.on.partition = given.on.partition;
  if (command.given("ring")) config.on.ring = given.on.ring;
  // That of other devices, or rates, isn't theirs.
  if (command.given("devices") || command.given("link-rate") || command.given("topology")) {
    config.on.topology = given.on.topology;
  }
  if (command.given("cache-policy")) config.cache_policy = given.cache_policy;
  if (command.given("scratch")) config.scratch = given.scratch;
  if (command.given("io")) config.io = given.io;
  check_sampling(options, config);
  return config;
}

}  // namespace ooc
