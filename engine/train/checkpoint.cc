#include "engine/train/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/model/parts/words.h"
#include "storage/base/errors.h"
#include "storage/io/hdf5_file.h"

namespace ooc {
namespace {

constexpr const char* kClassNames = "/class_names";  // a line each
constexpr const char* kFeatureScaling = "/feature_scaling";
constexpr const char* kBatches = "batches";
constexpr const char* kBatchLosses = "/batch_losses";
constexpr const char* kFormat = "ooc-checkpoint";
constexpr std::int64_t kVersion = 2;

void write_values(Hdf5Writer& file, const std::string& group, DType real,
                  const ParameterValues& parameter, const std::vector<std::byte>& values) {
  if (values.empty()) return;
  file.write_array(group + "/" + parameter.name, real, {parameter.rows, parameter.cols},
                   values.data());
}

DataError not_ours(const std::string& what, const std::string& where) {
  return {what, where, "use a checkpoint that ooc-train wrote"};
}

// For what may be too long for an attribute.
void write_text(Hdf5Writer& file, const char* path, const std::string& text) {
  file.write_array(path, DType::kU8, {std::ssize(text)}, text.data());
}

void write_facts(Hdf5Writer& file, const Checkpoint& checkpoint) {
  file.write_attribute("format", std::string(kFormat));
  file.write_attribute("version", kVersion);
  file.write_attribute("epoch", checkpoint.state.epoch);
  file.write_attribute("seed", checkpoint.config.seed);
  file.write_attribute("model", checkpoint.config.model.model);
  file.write_attribute("program", checkpoint.config.model.program);
  file.write_attribute("config", to_toml(checkpoint.config));
  file.write_attribute("dataset_checksum", checkpoint.dataset_checksum);
  file.write_attribute("feature_cols", checkpoint.feature_cols);
  file.write_attribute("classes", checkpoint.classes);
  file.write_attribute("edge_types", checkpoint.edge_types);
  file.write_attribute("edge_weights", std::int64_t{checkpoint.edge_weights});
  write_text(file, kFeatureScaling, to_text(checkpoint.feature_scaling));
  if (checkpoint.class_names.empty()) return;
  write_text(file, kClassNames, fmt::format("{}", fmt::join(checkpoint.class_names, "\n")));
}

// Older checkpoints lack it.
std::string read_text(const Hdf5Reader& file, const char* path) {
  if (!file.contains(path)) return "";
  const Hdf5Array array = file.read_array(path);
  return {reinterpret_cast<const char*>(array.data.data()), array.data.size()};
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

FeatureScaling read_scaling(const Hdf5Reader& file, const std::string& path) {
  const std::string text = read_text(file, kFeatureScaling);
  try {
    return text.empty() ? FeatureScaling() : feature_scaling_from_text(text);
  } catch (const nlohmann::json::exception&) {
    throw not_ours("unreadable scaling of features", path);
  }
}

// "best", of metrics after the first "best_ap".
std::string scores_prefix(const std::string& of, const RunConfig& config, std::size_t metric) {
  return metric == 0 ? of : fmt::format("{}_{}", of, word_of(kMetrics, config.metrics[metric]));
}

void write_scores(Hdf5Writer& file, const std::string& of, const RunConfig& config,
                  const std::vector<Scores>& scores) {
  OOC_CHECK(scores.size() == config.metrics.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::string prefix = scores_prefix(of, config, i);
    file.write_attribute(prefix + "_train", scores[i].train);
    file.write_attribute(prefix + "_valid", scores[i].valid);
    file.write_attribute(prefix + "_test", scores[i].test);
  }
}

std::vector<Scores> read_scores(const Hdf5Reader& file, const std::string& of,
                                const RunConfig& config) {
  std::vector<Scores> scores;
  for (std::size_t i = 0; i < config.metrics.size(); ++i) {
    const std::string prefix = scores_prefix(of, config, i);
    scores.push_back({file.read_double(prefix + "_train"), file.read_double(prefix + "_valid"),
                      file.read_double(prefix + "_test")});
  }
  return scores;
}

std::vector<ParameterValues> read_group(const Hdf5Reader& file, const std::string& group,
                                        DType real, const std::string& where) {
  std::vector<ParameterValues> parameters;
  for (const std::string& name : file.list(group)) {
    Hdf5Array array = file.read_array(group + "/" + name);
    if (array.dtype != real || array.shape.size() != 2) {
      throw not_ours(fmt::format("parameter {} is no {} matrix", name, dtype_name(real)), where);
    }
    parameters.push_back({name, array.shape[0], array.shape[1], std::move(array.data), {}, {}});
  }
  return parameters;
}

void read_moments(const Hdf5Reader& file, ParameterValues& parameter, const std::string& where) {
  for (const auto& [moment, bytes] : {std::pair("m", &parameter.m), {"v", &parameter.v}}) {
    const std::string path = fmt::format("/optimizer/{}/{}", moment, parameter.name);
    if (file.contains(path)) *bytes = file.read_array(path).data;
    if (!bytes->empty() && bytes->size() != parameter.value.size()) {
      throw not_ours(fmt::format("{} has the wrong size", path), where);
    }
  }
  if (parameter.m.empty() != parameter.v.empty()) {
    throw not_ours(fmt::format("one of the moments of parameter {} is missing", parameter.name),
                   where);
  }
}

// All but the moments and the best parameters.
Checkpoint read_model(const Hdf5Reader& file, DType real, const std::string& path) {
  if (file.read_string("format") != kFormat) throw not_ours("not a checkpoint", path);
  if (file.read_int("version") > kVersion) {
    throw DataError(fmt::format("checkpoint format version {} is newer than this ooc knows ({})",
                                file.read_int("version"), kVersion),
                    path, "use a newer ooc");
  }
  Checkpoint checkpoint;
  checkpoint.config = run_config_from_toml(file.read_string("config"), path);
  checkpoint.config.model.program = file.read_string("program");
  checkpoint.dataset_checksum = file.read_string("dataset_checksum");
  checkpoint.feature_cols = file.read_int("feature_cols");
  checkpoint.classes = file.read_int("classes");
  checkpoint.edge_types = file.read_int("edge_types");
  // Configurations of older ones say what became of weights.
  checkpoint.edge_weights =
      file.has_attribute("edge_weights") && file.read_int("edge_weights") != 0;
  checkpoint.class_names = lines_of(read_text(file, kClassNames));
  checkpoint.feature_scaling = read_scaling(file, path);
  TrainingState& state = checkpoint.state;
  state.epoch = file.read_int("epoch");
  state.best.epoch = file.read_int("best_epoch");
  state.evaluations_since_best = file.read_int("evaluations_since_best");
  state.best.scores = read_scores(file, "best", checkpoint.config);
  state.last = read_scores(file, "last", checkpoint.config);
  state.parameters = read_group(file, "/parameters", real, path);
  if (file.has_attribute(kBatches)) {
    state.batches = file.read_int(kBatches);
    const std::vector<std::byte> sums = file.read_array(kBatchLosses).data;
    state.batch_losses.resize(sums.size() / sizeof(double));
    std::memcpy(state.batch_losses.data(), sums.data(), state.batch_losses.size() * sizeof(double));
  }
  return checkpoint;
}

}  // namespace

void write_checkpoint(FileSystem& files, const std::string& path, const Checkpoint& checkpoint,
                      DType real) {
  const TrainingState& state = checkpoint.state;
  Hdf5Writer file;
  write_facts(file, checkpoint);
  file.write_attribute("best_epoch", state.best.epoch);
  file.write_attribute("evaluations_since_best", state.evaluations_since_best);
  write_scores(file, "best", checkpoint.config, state.best.scores);
  write_scores(file, "last", checkpoint.config, state.last);
  if (state.batches > 0) {
    file.write_attribute(kBatches, state.batches);
    file.write_array(kBatchLosses, DType::kF64, {std::ssize(state.batch_losses)},
                     state.batch_losses.data());
  }
  for (const ParameterValues& parameter : state.parameters) {
    write_values(file, "/parameters", real, parameter, parameter.value);
    write_values(file, "/optimizer/m", real, parameter, parameter.m);
    write_values(file, "/optimizer/v", real, parameter, parameter.v);
  }
  for (const ParameterValues& parameter : state.best.parameters) {
    write_values(file, "/best", real, parameter, parameter.value);
  }
  write_file_atomically(files, path, file.bytes());
}

void write_best(FileSystem& files, const std::string& path, const Checkpoint& checkpoint,
                DType real) {
  const BestModel& best = checkpoint.state.best;
  Checkpoint alone = checkpoint;
  alone.state = {};
  alone.state.epoch = best.epoch;
  alone.state.parameters = best.parameters;
  alone.state.best = best;
  alone.state.last = best.scores;
  alone.state.best.parameters.clear();
  write_checkpoint(files, path, alone, real);
}

Checkpoint read_checkpoint(FileSystem& files, const std::string& path, DType real) {
  const Hdf5Reader file(read_file(files, path), path);
  Checkpoint checkpoint = read_model(file, real, path);
  for (ParameterValues& parameter : checkpoint.state.parameters) {
    read_moments(file, parameter, path);
  }
  checkpoint.state.best.parameters = read_group(file, "/best", real, path);
  return checkpoint;
}

Checkpoint read_model(FileSystem& files, const std::string& path, DType real) {
  return read_model(Hdf5Reader(read_file(files, path), path), real, path);
}

}  // namespace ooc
