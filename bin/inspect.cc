// ooc-inspect: says what a dataset, a run directory, a checkpoint or a model holds, and what the
// machine computes with.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bin/cli/batches_facts.h"
#include "bin/cli/facts.h"
#include "bin/cli/program.h"
#include "bin/inspect_machine.h"
#include "bin/inspect_model.h"
#include "engine/model/parts/words.h"
#include "engine/train/run_directory.h"
#include "storage/base/errors.h"
#include "storage/batches/batch_file.h"
#include "storage/dataset/dataset.h"

namespace ooc {
namespace {

using cli::Facts;

Facts dataset_facts(const std::string& path) {
  const Dataset dataset = Dataset::open(posix_file_system(), path, VerifyPolicy::kFirst);
  const Manifest& manifest = dataset.manifest();
  Facts facts;
  facts["dataset"] = path;
  facts["vertices"] = dataset.vertices();
  facts["edges"] = dataset.edges();
  facts["symmetric"] = manifest.symmetric;
  facts["edge_weights"] = manifest.edges.data.weights;
  facts["edge_types"] = manifest.edge_types;
  facts["edge_features"] = manifest.edges.data.feature_cols;
  facts["features"] = manifest.feature_cols;
  if (manifest.feature_cols > 0) facts["feature_dtype"] = dtype_name(manifest.feature_dtype);
  facts[manifest.labels == LabelKind::kValues ? "targets" : "classes"] = manifest.classes;
  if (dataset.tensor("labels") != nullptr) {
    facts["labels"] = kLabelKindNames[static_cast<std::size_t>(manifest.labels)];
  }
  if (!manifest.class_names.empty()) facts["class_names"] = manifest.class_names;
  if (dataset.has_splits()) {
    facts["train"] = manifest.split_counts[0];
    facts["valid"] = manifest.split_counts[1];
    facts["test"] = manifest.split_counts[2];
  }
  facts["order"] = manifest.order;
  facts["remapped_ids"] = kIdKindNames[static_cast<std::size_t>(manifest.remapped)];
  facts["block_rows"] = manifest.edges.block_rows;
  facts["blocks"] = manifest.edges.block_count();
  facts["span_rows"] = manifest.edges.span_rows;
  facts["spans"] = manifest.edges.span_count();
  facts["panels"] = manifest.edges.panel_count();
  facts["import"] = Facts::parse(manifest.transforms);
  facts["found"] = Facts::parse(manifest.findings);
  std::int64_t total = 0;
  for (const auto& [name, info] : manifest.files) {
    facts["file_bytes"][name] = info.bytes;
    total += static_cast<std::int64_t>(info.bytes);
  }
  facts["total_bytes"] = total;
  return facts;
}

std::string text_of(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(posix_file_system(), path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Facts parse_json(const std::string& text, const std::string& where) {
  Facts facts = Facts::parse(text, nullptr, false);
  if (facts.is_discarded()) throw DataError("not JSON", where, "the run directory is damaged");
  return facts;
}

Facts config_facts(const std::string& text, const std::string& where) {
  try {
    const toml::table table = toml::parse(text, where);
    std::ostringstream json;
    json << toml::json_formatter(table);
    return Facts::parse(json.str());
  } catch (const toml::parse_error& error) {
    throw DataError(std::string(error.description()), where, "the run directory is damaged");
  }
}

// The last line of metrics.jsonl that is whole; a run that was killed may leave a torn one.
Facts last_epoch(const std::string& path) {
  const std::string text = text_of(path);
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos) return nullptr;
  const std::size_t begin = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  return parse_json(text.substr(begin + 1, end - begin - 1), path);
}

Facts run_facts(const std::string& path) {
  FileSystem& files = posix_file_system();
  const std::string config = join_path(path, "config.toml");
  const std::string metrics = join_path(path, "metrics.jsonl");
  const std::string summary = join_path(path, "summary.json");
  Facts facts;
  facts["run"] = path;
  facts["finished"] = files.exists(summary);
  facts["config"] = config_facts(text_of(config), config);
  if (files.exists(metrics)) facts["last_epoch"] = last_epoch(metrics);
  if (files.exists(summary)) facts["summary"] = parse_json(text_of(summary), summary);
  const RunDirectory run = RunDirectory::open(files, path);
  if (const auto latest = run.latest_checkpoint_at()) {
    facts["latest_checkpoint"] = run.checkpoint_path(*latest);
  }
  if (files.exists(run.best_path())) facts["best"] = run.best_path();
  return facts;
}

Facts checkpoint_facts(const std::string& path) {
  const Checkpoint checkpoint = read_model(posix_file_system(), path, DType::kF32);
  const TrainingState& state = checkpoint.state;
  Facts facts;
  facts["checkpoint"] = path;
  facts["epoch"] = state.epoch;
  facts["features"] = checkpoint.feature_cols;
  const bool values = checkpoint.config.model.task == Task::kRegression;
  facts[values ? "targets" : "classes"] = checkpoint.classes;
  if (!checkpoint.class_names.empty()) facts["class_names"] = checkpoint.class_names;
  facts["best_epoch"] = state.best.epoch;
  for (std::size_t i = 0; i < state.best.scores.size(); ++i) {
    const Scores& scores = state.best.scores[i];
    const std::string best = "best_" + word_of(kMetrics, checkpoint.config.metrics[i]);
    for (const auto& [split, score] :
         {std::pair("train", scores.train), {"valid", scores.valid}, {"test", scores.test}}) {
      if (!std::isnan(score)) facts[best][split] = score;
    }
  }
  facts["config"] = config_facts(to_toml(checkpoint.config), path);
  for (const ParameterValues& parameter : state.parameters) {
    facts["parameters"][parameter.name] = fmt::format("{} x {}", parameter.rows, parameter.cols);
  }
  return facts;
}

Facts inspect_path(const std::string& path) {
  FileSystem& files = posix_file_system();
  if (!files.exists(path)) {
    throw DataError("not found", path, "name a dataset, a run directory or a checkpoint");
  }
  if (!files.is_directory(path)) {
    if (path.ends_with(".h5") || path.ends_with(".hdf5")) return checkpoint_facts(path);
    const std::string directory = parent_path(path);
    const bool known = files.exists(join_path(directory, "config.toml")) ||
                       files.exists(join_path(directory, kManifestFile));
    throw DataError("not a checkpoint", path,
                    known ? fmt::format("name the directory that it is in, {}", directory)
                          : "name a dataset, a run directory or a checkpoint NAME.h5");
  }
  if (is_batches(files, path)) {
    const BatchFile batches = BatchFile::open(files, path, VerifyPolicy::kFirst);
    return cli::batches_facts(path, batches.manifest());
  }
  if (files.exists(join_path(path, kManifestFile))) return dataset_facts(path);
  if (files.exists(join_path(path, "config.toml"))) return run_facts(path);
  throw DataError("neither a dataset nor a run directory", path,
                  "a dataset has a manifest.json, a run a config.toml");
}

void run(const std::string& path, InspectedModel& model, bool machine, bool json) {
  const int things = (path.empty() ? 0 : 1) + (model.model.empty() ? 0 : 1) + (machine ? 1 : 0);
  if (things != 1) {
    throw UsageError(
        things == 0 ? "nothing to inspect" : "more than one thing to inspect", "command line",
        "name a dataset, a run directory or a checkpoint, or give --model or --machine");
  }
  if (machine) {
    cli::print_facts(machine_facts(), json);
  } else if (model.model.empty()) {
    cli::print_facts(inspect_path(path), json);
  } else {
    print_model(model, json);
  }
}

}  // namespace
}  // namespace ooc

int main(int argc, char** argv) {
  std::string path;
  ooc::InspectedModel model;
  bool machine = false;
  bool json = false;
  const auto setup = [&](ooc::cli::Command& command) {
    command.positional("PATH", "path", path,
                       "a dataset NAME.ooc, batches NAME.batches, a run directory or a checkpoint");
    ooc::add_model_options(command, model);
    command.flag("--machine", machine,
                 "Show what runs compute with here: vectors, kernels, memory, I/O");
    command.flag("--json", json, "Print JSON instead of text");
    command.example("What a dataset holds", "ooc-inspect cora.ooc");
    command.example("What sampled batches hold", "ooc-inspect cora.batches");
    command.example("How a run went, for a script", "ooc-inspect runs/cora-gcn --json");
    command.example("What a model computes", "ooc-inspect --model gat");
    command.example("What a program of your own becomes",
                    "ooc-inspect --model ./mine.saga --features 1433 --classes 7");
    command.example("What runs compute with on this machine", "ooc-inspect --machine");
    command.action([&] { ooc::run(path, model, machine, json); });
  };
  return ooc::cli::run_program(
      "ooc-inspect",
      "Says what a dataset, a run directory, a checkpoint, a model or this machine holds.", argc,
      argv, setup);
}
