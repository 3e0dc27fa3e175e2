// ooc-infer: applies a trained model to a dataset.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "bin/cli/devices.h"
#include "bin/cli/metric_option.h"
#include "bin/cli/numbers.h"
#include "bin/cli/own_scratch.h"
#include "bin/cli/program.h"
#include "bin/cli/progress.h"
#include "bin/cli/sampler_options.h"
#include "bin/cli/threads.h"
#include "engine/infer/inference.h"
#include "engine/machine/dataset_io.h"
#include "engine/machine/devices.h"
#include "engine/machine/gpus.h"
#include "engine/machine/host_memory.h"
#include "engine/model/parts/words.h"
#include "engine/train/run_directory.h"
#include "storage/base/errors.h"
#include "storage/dataset/result_file.h"

namespace ooc {
namespace {

struct Options {
  std::string dataset;
  std::string run;
  std::string checkpoint;
  std::string output;
  std::optional<Output> what;
  std::optional<std::int64_t> layer;
  std::vector<Metric> metrics;
  MachineShare on;
  std::string scratch;
  DatasetIo io = DatasetIo::kAuto;
  std::optional<std::int64_t> threads;
  Fanouts fanouts;  // empty: all edges
  std::optional<std::int64_t> batch_size;

  bool sampled() const { return !fanouts.empty(); }
  bool json = false;
  bool force = false;
};

void add_options(cli::Command& command, Options& options) {
  command.positional("NAME.ooc", "dataset", options.dataset, "the dataset to apply the model to");
  command.required();
  command.path("--run", options.run, "RUN_DIR", "Take the best model of a run");
  command.path("--checkpoint", options.checkpoint, "FILE", "Take the model of a checkpoint");
  command.output("-o,--output", options.output, "FILE",
                 "Where to write: .npy, .h5, or .csv with ids and names of classes");
  command.required();
  command.choice<std::optional<Output>>(
      "--what", options.what,
      {{"logits", Output::kLogits},
       {"probabilities", Output::kProbabilities},
       {"classes", Output::kClasses},
       {"values", Output::kValues},
       {"embeddings", Output::kEmbeddings}},
      "What to write, a row a vertex in the order of your input; logits if absent, values of a "
      "regression. classes of a multi-label model are a matrix of 0 and 1 (uint8)");
  command.parsed("--layer", "N|all", "the number of a layer, from 1, or all",
                 "Of --what embeddings: the rows after layer N, of the last one without a head the "
                 "logits; all: after each, OUT.layer1.npy and so on. If absent what the last layer "
                 "or the head reads",
                 [&options](const std::string& text) {
                   options.layer = text == "all" ? kAllLayers : cli::parse_integer(text);
                   return options.layer && (text == "all" || *options.layer > 0);
                 });
  cli::add_metric_option(
      command, options.metrics,
      "Score each split by them, where the dataset has labels; the run's if absent");
  command.parsed("--fanouts,--num-neighbors", "N,N,...", kFanoutsValues,
                 "Compute by sampled batches: of a vertex's in-edges so many at most, hop by hop, "
                 "chosen as the run's --sampler does. If absent by all edges, exactly",
                 [&options](const std::string& text) {
                   const std::optional<Fanouts> fanouts = parse_fanouts(text);
                   if (fanouts) options.fanouts = *fanouts;
                   return fanouts.has_value();
                 });
  command.integer("--batch-size", options.batch_size, 1,
                  "With --fanouts: vertices of a batch; as the run's if absent", cli::kMostSeeds);
  cli::add_device_options(command, options.on);
  command.integer("--threads", options.threads, 1,
                  "Threads of the CPU; as many as cores if absent");
  command.size_or_auto("--host-memory", options.on.host_memory,
                       "All the memory the process may take; auto: what the machine and its limits "
                       "leave it");
  command.directory("--scratch", options.scratch,
                    "Where tensors go that don't fit memory; the directory of the output if "
                    "absent");
  cli::add_io_option(command, options.io);
  command.flag("--json", options.json, "Print JSON instead of text");
  command.flag("--force", options.force, "Replace an output that exists");
  command.example("The class of every vertex",
                  "ooc-infer cora.ooc --run runs/cora-gcn -o classes.npy --what classes");
  command.example("How a trained model does on a graph that it hasn't seen, by two metrics",
                  "ooc-infer new.ooc --run runs/cora-gcn -o logits.npy --metric macro_f1,accuracy");
  command.example("A table of ids, as yours, and how probable each class is",
                  "ooc-infer cora.ooc --run runs/cora-gcn -o classes.csv --what probabilities");
  command.example("By samples, as the run was trained, where all edges take too long",
                  "ooc-infer cora.ooc --run runs/cora-sage -o classes.npy --fanouts 25,10");
  command.example("Embeddings from a certain checkpoint",
                  "ooc-infer cora.ooc --checkpoint runs/cora-gcn/checkpoint-100.h5 -o "
                  "embeddings.h5 --what embeddings");
  command.example(
      "What each layer makes of the vertices, a file a layer",
      "ooc-infer cora.ooc --run runs/cora-gcn -o rows.npy --what embeddings --layer all");
}

// The file of a run's best model.
std::string best_of(const RunDirectory& run) {
  if (run.config().runs > 1) {
    throw UsageError(
        fmt::format("{} runs of different seeds", run.config().runs), run.path(),
        fmt::format("name one of them, such as {}/seed-{}", run.path(), run.config().seed));
  }
  if (!posix_file_system().exists(run.best_path())) {
    throw DataError("the run has no model yet", run.path(),
                    fmt::format("train until the first evaluation and checkpoint, with "
                                "ooc-train --resume {}",
                                run.path()));
  }
  return run.best_path();
}

void print_result(const Options& options, const Dataset& dataset, const Checkpoint& checkpoint,
                  const InferenceResult& result) {
  nlohmann::ordered_json facts;
  std::vector<std::string> ids;
  for (const std::string& path : result.paths) {
    const std::string ids_path = result_ids_path(path, dataset.manifest().remapped);
    if (!ids_path.empty()) ids.push_back(ids_path);
  }
  // One is a text, those of all layers a list.
  const auto paths = [&](const std::vector<std::string>& list) {
    const bool many = options.layer == kAllLayers;
    return many ? nlohmann::ordered_json(list) : nlohmann::ordered_json(list.front());
  };
  facts["output"] = paths(result.paths);
  facts["rows"] = dataset.vertices();
  facts["peak_host_bytes"] = peak_host_bytes();
  if (!ids.empty()) facts["ids"] = paths(ids);
  const std::vector<Metric>& metrics =
      options.metrics.empty() ? checkpoint.config.metrics : options.metrics;
  for (std::size_t i = 0; i < result.scores.size(); ++i) {
    const Scores& scores = result.scores[i];
    const std::string metric = word_of(kMetrics, metrics[i]);
    for (const auto& [split, score] :
         {std::pair("train", scores.train), {"valid", scores.valid}, {"test", scores.test}}) {
      if (std::isnan(score)) continue;
      facts[metric][split] = score;
      if (!options.json) fmt::print("{} {} {:.4f}\n", split, metric, score);
    }
  }
  if (options.json) {
    fmt::print("{}\n", facts.dump(2));
    return;
  }
  for (const std::string& path : result.paths) {
    fmt::print("{}: {} rows\n", path, dataset.vertices());
  }
  for (const std::string& path : ids) fmt::print("{}: their ids\n", path);
}

void check(const Options& options) {
  if (options.run.empty() == options.checkpoint.empty()) {
    throw UsageError(options.run.empty() ? "no model" : "two models", "command line",
                     "name it by either --run or --checkpoint");
  }
  if (options.batch_size && options.fanouts.empty()) {
    throw UsageError("--batch-size without --fanouts", "command line", "leave it out");
  }
  if (options.sampled() && options.on.devices != "auto" && options.on.devices != "cpu") {
    throw UsageError(fmt::format("--fanouts with --devices {}", options.on.devices), "command line",
                     "sampled batches compute on the CPU");
  }
  if (options.layer && options.what != Output::kEmbeddings) {
    throw UsageError("--layer without --what embeddings", "command line", "leave it out");
  }
}

InferenceOptions inference_options(const Options& options, const RunConfig& config) {
  InferenceOptions inference;
  inference.output = options.what.value_or(default_output(config.model.task));
  inference.layer = options.layer;
  inference.metrics = options.metrics;
  inference.path = options.output;
  inference.force = options.force;
  inference.may_map = options.io == DatasetIo::kAuto;
  inference.scratch = options.scratch.empty() ? parent_path(options.output) : options.scratch;
  if (!options.sampled()) return inference;
  inference.sampling = config.sampling;
  inference.sampling.fanouts = options.fanouts;
  if (options.batch_size) inference.sampling.batch_size = *options.batch_size;
  return inference;
}

void infer(const Options& options, bool quiet) {
  FileSystem& files = posix_file_system();
  check(options);
  check_result_path(files, options.output);
  const std::string checkpoint_path =
      options.run.empty() ? options.checkpoint : best_of(RunDirectory::open(files, options.run));
  const Checkpoint checkpoint = read_model(files, checkpoint_path, DType::kF32);
  const std::int64_t held_reading = most_held_host_bytes();
  const Dataset dataset = Dataset::open(files, options.dataset, VerifyPolicy::kFirst);
  const std::unique_ptr<BlockIo> io = open_io(options.io);
  InferenceOptions inference = inference_options(options, checkpoint.config);
  cli::Progress progress(cli::Progress::standard_output(quiet));
  inference.on_wait = [&](double share) {
    progress.update({"preparing batches", "", share, 1, 0, ""});
  };
  inference.on_batch = [&](std::int64_t done, std::int64_t batches) {
    progress.update(
        {"computing", "batches", static_cast<double>(done), static_cast<double>(batches), 0, ""});
  };
  if (!options.scratch.empty()) files.create_directories(options.scratch);
  // Lists of what is sampled have names there.
  const cli::OwnScratch own(options.sampled() ? inference.scratch : "", options.output);
  if (!own.path().empty()) inference.scratch = own.path();
  const auto infer_on = [&](MachineShare on, const std::string& devices) {
    on.devices = devices;
    inference.budget = measured_budget(*io, on, inference.scratch);
    inference.budget.scratch_bytes = cli::free_disk_bytes(inference.scratch);
    // A budget is of all that the process ever takes: a large model's file was in memory as well.
    inference.budget.resident_bytes = std::max(inference.budget.resident_bytes, held_reading);
    inference.budget.resident_bytes += mapped_slack_bytes(options.io);
    const Devices machine(devices, inference.budget);
    inference.others = machine.others();
    log_kernels(blas_core());
    return run_inference(files, machine.first(), *io, dataset, checkpoint, inference,
                         &cli::stop_flag());
  };
  std::optional<InferenceResult> on_gpu;
  const bool chooses = options.on.devices == "auto" && !options.sampled();
  for (const std::string& devices : chooses ? gpus_of_auto() : std::vector<std::string>()) {
    try {
      on_gpu = infer_on(options.on, devices);
      spdlog::info("computed on {}, {}", devices, name_of_gpu(devices));
      break;
    } catch (const DeviceError& error) {
      spdlog::warn("not computing on {}: {}", devices, error.what());
    } catch (const BudgetError& error) {
      if (options.on.device_memory != "auto") throw;
      spdlog::warn("not computing on {}: {}", devices, error.what());
    }
  }
  const InferenceResult result =
      on_gpu ? std::move(*on_gpu) : infer_on(options.on, options.on.devices);
  progress.finish();
  print_result(options, dataset, checkpoint, result);
}

}  // namespace
}  // namespace ooc

int main(int argc, char** argv) {
  ooc::Options options;
  return ooc::cli::run_program("ooc-infer", "Applies a trained model to a dataset.", argc, argv,
                               [&](ooc::cli::Command& command) {
                                 ooc::add_options(command, options);
                                 command.action([&] {
                                   ooc::cli::stop_flag();
                                   ooc::cli::run_with_threads(options.threads, [&] {
                                     ooc::infer(options, command.quiet());
                                   });
                                 });
                               });
}
