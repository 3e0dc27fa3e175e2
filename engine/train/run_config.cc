#include "engine/train/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "engine/machine/devices.h"
#include "engine/train/config_words.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr Words<VerifyPolicy, 3> kPolicies{{{"first", VerifyPolicy::kFirst},
                                            {"always", VerifyPolicy::kAlways},
                                            {"never", VerifyPolicy::kNever}}};

// The word of a value that has one.
std::string name_of(Norm norm) { return word_of(kNorms, norm); }
std::string name_of(Jumping jumping) { return word_of(kJumpings, jumping); }
std::string name_of(Activation activation) { return word_of(kActivations, activation); }
std::string name_of(Aggregation aggr) { return word_of(kAggregations, aggr); }
std::string name_of(Task task) { return word_of(kTasks, task); }
std::string name_of(Loss loss) { return word_of(kLosses, loss); }
std::string name_of(const std::vector<Metric>& metrics) {
  std::string list;
  for (const Metric metric : metrics) list += (list.empty() ? "" : ",") + word_of(kMetrics, metric);
  return list;
}
std::string name_of(const ClassWeights& weights) { return to_text(weights); }
std::string name_of(EdgeWeights weights) { return word_of(kEdgeWeightUses, weights); }
std::string name_of(OptimizerKind optimizer) { return word_of(kOptimizers, optimizer); }
std::string name_of(LrSchedule schedule) { return word_of(kLrSchedules, schedule); }
std::string name_of(Strategy strategy) { return word_of(kStrategies, strategy); }
std::string name_of(DevicePartition partition) { return word_of(kDevicePartitions, partition); }
std::string name_of(DatasetIo io) { return word_of(kDatasetIos, io); }
std::string name_of(Sampler sampler) { return word_of(kSamplers, sampler); }
std::string name_of(const Fanouts& fanouts) { return to_text(fanouts); }
std::string name_of(const EvalFanouts& fanouts) { return to_text(fanouts); }
std::string name_of(VerifyPolicy verify) { return word_of(kPolicies, verify); }

// Keys that files of older versions don't have.
const std::set<std::string> kLater{"task",
                                   "loss",
                                   "metric",
                                   "class-weights",
                                   "edge-weights",
                                   "lr-schedule",
                                   "optimizer",
                                   "momentum",
                                   "runs",
                                   "host-memory",
                                   "cache-policy",
                                   "scratch",
                                   "devices",
                                   "device-memory",
                                   "link-rate",
                                   "io",
                                   "device-partition",
                                   "ring",
                                   "topology",
                                   "fanouts",
                                   "batch-size",
                                   "replace",
                                   "eval-fanouts",
                                   "sampler",
                                   "batch-dependency",
                                   "weighted",
                                   "checkpoint-batches"};

// Calls visit(key, member) for every member, in the order they are written.
template <class Config, class Visit>
void for_each_member(Config& config, Visit&& visit) {
  visit("dataset", config.dataset);
  visit("model", config.model.model);
  visit("layers", config.model.layers);
  visit("hidden", config.model.hidden);
  visit("heads", config.model.heads);
  visit("out-heads", config.model.out_heads);
  visit("norm", config.model.norm);
  visit("residual", config.model.residual);
  visit("linear-head", config.model.linear_head);
  visit("jumping", config.model.jumping);
  visit("activation", config.model.activation);
  visit("aggr", config.model.aggr);
  visit("dropout", config.model.dropout);
  visit("input-dropout", config.model.input_dropout);
  visit("attn-dropout", config.model.attn_dropout);
  visit("edge-weights", config.model.edge_weights);
  visit("task", config.model.task);
  visit("loss", config.model.loss);
  visit("metric", config.metrics);
  visit("class-weights", config.model.class_weights);
  visit("epochs", config.epochs);
  visit("lr", config.lr);
  visit("lr-schedule", config.lr_schedule);
  visit("optimizer", config.optimizer);
  visit("momentum", config.momentum);
  visit("weight-decay", config.weight_decay);
  visit("seed", config.seed);
  visit("runs", config.runs);
  visit("patience", config.patience);
  visit("eval-every", config.eval_every);
  visit("checkpoint-every", config.checkpoint_every);
  visit("checkpoint-batches", config.checkpoint_batches);
  visit("fanouts", config.sampling.fanouts);
  visit("batch-size", config.sampling.batch_size);
  visit("replace", config.sampling.replace);
  visit("eval-fanouts", config.sampling.eval_fanouts);
  visit("sampler", config.sampling.sampler);
  visit("batch-dependency", config.sampling.batch_dependency);
  visit("weighted", config.sampling.weighted);
  visit("verify", config.verify);
  visit("rewrites", config.rewrites);
  visit("devices", config.on.devices);
  visit("device-partition", config.on.partition);
  visit("ring", config.on.ring);
  visit("topology", config.on.topology);
  visit("host-memory", config.on.host_memory);
  visit("device-memory", config.on.device_memory);
  visit("link-rate", config.on.link_rate);
  visit("cache-policy", config.cache_policy);
  visit("scratch", config.scratch);
  visit("io", config.io);
}

class TomlReader {
 public:
  TomlReader(const toml::table& table, std::string where)
      : table_(table), where_(std::move(where)) {}

  void read(const char* key, std::string& value) { value = get<std::string>(key); }
  void read(const char* key, std::int64_t& value) { value = get<std::int64_t>(key); }
  void read(const char* key, double& value) { value = get<double>(key); }  // "1" as well
  void read(const char* key, bool& value) { value = get<bool>(key); }
  void read(const char* key, Norm& value) { read_word(key, kNorms, value); }
  void read(const char* key, Jumping& value) { read_word(key, kJumpings, value); }
  void read(const char* key, Activation& value) { read_word(key, kActivations, value); }
  void read(const char* key, Aggregation& value) { read_word(key, kAggregations, value); }
  void read(const char* key, Task& value) { read_word(key, kTasks, value); }
  void read(const char* key, Loss& value) { read_word(key, kLosses, value); }
  void read(const char* key, EdgeWeights& value) { read_word(key, kEdgeWeightUses, value); }
  void read(const char* key, OptimizerKind& value) { read_word(key, kOptimizers, value); }
  void read(const char* key, LrSchedule& value) { read_word(key, kLrSchedules, value); }
  void read(const char* key, Strategy& value) { read_word(key, kStrategies, value); }
  void read(const char* key, DevicePartition& value) { read_word(key, kDevicePartitions, value); }
  void read(const char* key, DatasetIo& value) { read_word(key, kDatasetIos, value); }
  void read(const char* key, VerifyPolicy& value) { read_word(key, kPolicies, value); }

  void read(const char* key, std::vector<Metric>& value) {
    value.clear();
    std::istringstream words(get<std::string>(key));
    for (std::string word; std::getline(words, word, ',');) {
      value.push_back(word_in(key, kMetrics, word));
    }
    if (value.empty()) wrong(key);
  }
  void read(const char* key, Sampler& value) { read_word(key, kSamplers, value); }
  void read(const char* key, Fanouts& value) {
    const std::string text = get<std::string>(key);
    const std::optional<Fanouts> fanouts = parse_fanouts(text);
    if (!fanouts && !text.empty()) wrong(key);
    value = fanouts.value_or(Fanouts{});
  }
  void read(const char* key, EvalFanouts& value) {
    const std::string text = get<std::string>(key);
    const std::optional<EvalFanouts> fanouts = parse_eval_fanouts(text);
    if (!fanouts && !text.empty()) wrong(key);
    value = fanouts.value_or(EvalFanouts{});
  }
  void read(const char* key, ClassWeights& value) {
    const std::optional<ClassWeights> weights = parse_class_weights(get<std::string>(key));
    if (!weights) wrong(key);
    value = *weights;
  }

  [[noreturn]] void wrong(const std::string& key) const {
    throw DataError(fmt::format("{} is missing, unknown or has a wrong value", key), where_,
                    "mend the file, or train anew");
  }

 private:
  template <class T>
  T get(const char* key) const {
    const std::optional<T> value = table_[key].value<T>();
    if (!value) wrong(key);
    return *value;
  }

  template <class T, std::size_t n>
  void read_word(const char* key, const Words<T, n>& words, T& value) const {
    value = word_in(key, words, get<std::string>(key));
  }

  template <class T, std::size_t n>
  T word_in(const char* key, const Words<T, n>& words, const std::string& text) const {
    for (const auto& [name, meaning] : words) {
      if (text == name) return meaning;
    }
    wrong(key);
  }

  const toml::table& table_;
  std::string where_;
};

}  // namespace

void check_config(const RunConfig& config, LabelKind labels, std::int64_t classes,
                  const std::string& where) {
  const Task task = config.model.task;
  check_task(task, labels, classes, where);
  check_loss(config.model.loss, task);
  check_metrics(config.metrics, task, classes);
  check_class_weights(config.model.class_weights, task, classes);
  if (config.momentum != 0 && config.optimizer != OptimizerKind::kSgd) {
    throw UsageError(fmt::format("--momentum {}", config.momentum),
                     fmt::format("--optimizer {}", word_of(kOptimizers, config.optimizer)),
                     "momentum is sgd's: leave one of them out");
  }
}

double learning_rate(const RunConfig& config, std::int64_t epoch) {
  const std::int64_t done = epoch - 1;
  switch (config.lr_schedule) {
    case LrSchedule::kConstant:
      return config.lr;
    case LrSchedule::kCosine: {
      const auto last = static_cast<double>(std::max<std::int64_t>(1, config.epochs - 1));
      if (done >= config.epochs - 1 && done > 0) return 0;
      return config.lr * (1 + std::cos(std::numbers::pi * static_cast<double>(done) / last)) / 2;
    }
    case LrSchedule::kStep:
      if (4 * done >= 3 * config.epochs) return config.lr * 0.01;
      return 2 * done >= config.epochs ? config.lr * 0.1 : config.lr;
  }
  return config.lr;
}

std::string to_toml(const RunConfig& config) {
  std::ostringstream out;
  for_each_member(config, [&](const char* key, const auto& value) {
    using T = std::decay_t<decltype(value)>;
    out << key << " = ";
    if constexpr (requires { name_of(value); }) {
      out << '"' << name_of(value) << '"';
    } else if constexpr (std::is_same_v<T, double>) {
      out << fmt::format("{}", value);  // the shortest text that reads back to the same number
    } else {
      out << toml::value<T>(value);
    }
    out << '\n';
  });
  return out.str();
}

RunConfig run_config_from_toml(const std::string& text, const std::string& where) {
  toml::table table;
  try {
    table = toml::parse(text, where);
  } catch (const toml::parse_error& error) {
    throw DataError(fmt::format("not a run's configuration ({})", error.description()),
                    fmt::format("{}, line {}", where, error.source().begin.line),
                    "mend the file, or train anew");
  }
  RunConfig config;
  config.model.edge_weights = EdgeWeights::kIgnore;  // of runs before there was a choice
  TomlReader reader(table, where);
  std::set<std::string> known;
  for_each_member(config, [&](const char* key, auto& value) {
    known.insert(key);
    if (table.contains(key) || !kLater.contains(key)) reader.read(key, value);
  });
  const auto is_memory = [](const std::string& size) {
    return size == "auto" || parse_byte_size(size).value_or(0) > 0;
  };
  if (!is_device(config.on.devices)) reader.wrong("devices");
  if (config.on.ring != "on" && config.on.ring != "off") reader.wrong("ring");
  if (!is_memory(config.on.host_memory)) reader.wrong("host-memory");
  if (!is_memory(config.on.device_memory)) reader.wrong("device-memory");
  if (!is_memory(config.on.link_rate)) reader.wrong("link-rate");
  const std::tuple<const char*, std::int64_t, std::int64_t> leasts[] = {
      {"epochs", config.epochs, 1},
      {"runs", config.runs, 1},
      {"eval-every", config.eval_every, 1},
      {"checkpoint-every", config.checkpoint_every, 1},
      {"checkpoint-batches", config.checkpoint_batches, 1},
      {"batch-size", config.sampling.batch_size, 1},
      {"batch-dependency", config.sampling.batch_dependency, 1},
      {"patience", config.patience, 0},
      {"seed", config.seed, 0}};
  for (const auto& [key, value, least] : leasts) {
    if (value < least) reader.wrong(key);
  }
  for (const auto& [key, value] : table) {
    if (!known.contains(std::string(key.str()))) reader.wrong(std::string(key.str()));
  }
  return config;
}

}  // namespace ooc
