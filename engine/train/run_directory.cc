#include "engine/train/run_directory.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/machine/host_memory.h"
#include "engine/model/parts/words.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kConfig = "config.toml";
constexpr const char* kProgram = "program.saga";
constexpr const char* kPlan = "plan.json";
constexpr const char* kMetricLines = "metrics.jsonl";
constexpr const char* kSummary = "summary.json";
constexpr const char* kReplaces = ".replaces";  // there until the run that was put aside is gone
constexpr const char* kLock = ".lock";          // while a process trains
constexpr std::string_view kCheckpointPrefix = "checkpoint-";
constexpr std::string_view kBatchMark = "-batch-";
constexpr std::string_view kCheckpointSuffix = ".h5";

std::string text_of(FileSystem& files, const std::string& path) {
  const std::vector<std::byte> bytes = read_file(files, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Of a checkpoint's name, such as "checkpoint-12.h5".
std::optional<TrainedTo> trained_to(std::string_view name) {
  if (!name.starts_with(kCheckpointPrefix) || !name.ends_with(kCheckpointSuffix)) {
    return std::nullopt;
  }
  name.remove_prefix(kCheckpointPrefix.size());
  name.remove_suffix(kCheckpointSuffix.size());
  const std::size_t mark = name.find(kBatchMark);
  const std::optional<std::int64_t> epoch = whole_number(name.substr(0, mark));
  if (mark == std::string_view::npos || !epoch) {
    return epoch ? std::optional(TrainedTo{*epoch}) : std::nullopt;
  }
  const std::optional<std::int64_t> batch = whole_number(name.substr(mark + kBatchMark.size()));
  return batch ? std::optional(TrainedTo{*epoch, *batch}) : std::nullopt;
}

// Calls visit(line) for the lines of a file, without their ends, as long as it says to go on; not
// for a torn last one. Memory of one line, or a little more.
template <class Visit>
void for_each_line(const ReadableFile& file, Visit&& visit) {
  constexpr std::size_t kPiece = 1 << 16;
  std::string text;  // read, and not visited yet
  std::array<char, kPiece> piece;
  for (std::uint64_t offset = 0; offset < file.size();) {
    const std::size_t count = file.read_at(offset, std::as_writable_bytes(std::span(piece)));
    if (count == 0) return;
    offset += count;
    const std::size_t fresh = text.size();
    text.append(piece.data(), count);
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n', fresh); end != std::string::npos;
         end = text.find('\n', begin)) {
      if (!visit(std::string_view(text).substr(begin, end - begin))) return;
      begin = end + 1;
    }
    text.erase(0, begin);
  }
}

std::string aside(const std::string& path) { return path + ".replaced"; }

// What is left of a start that was cut off before there was a config.toml. A program that is
// neither this run's nor beside a mark of ours is somebody's own.
bool is_begun_only(FileSystem& files, const std::string& path, const std::string& program) {
  const std::vector<std::string> names = files.list(path);
  const bool marked = std::find(names.begin(), names.end(), kReplaces) != names.end();
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    if (name.ends_with(".tmp") || name == kReplaces || name == kLock) return true;
    const std::string file = join_path(path, name);
    return name == kProgram && !files.is_directory(file) &&
           (marked || text_of(files, file) == program);
  });
}

// Keeps the run at `path` until another has taken its place for good. If it was to take another's
// place itself and hasn't finished, that other one is kept.
void put_aside(FileSystem& files, const std::string& path) {
  { const RunLock nobody_trains_it(files, path); }
  if (!files.exists(aside(path))) {
    files.rename(path, aside(path));
    return;
  }
  if (!files.exists(join_path(path, kReplaces))) {
    throw UsageError("the name for the replaced run is taken", aside(path),
                     "remove it or choose another --run-dir");
  }
  files.remove_all(path);
}

}  // namespace

RunLock::RunLock(FileSystem& files, const std::string& run)
    : files_(files), path_(join_path(run, kLock)), lock_(files.lock(path_)) {
  if (lock_) return;
  throw UsageError("another process is training this run", run,
                   "wait for it, or stop it before you go on");
}

RunLock::~RunLock() {
  try {
    files_.remove_all(path_);
  } catch (const Error& error) {  // it doesn't matter if it stays
    spdlog::debug("{}", error.what());
  }
}

RunDirectory RunDirectory::create(FileSystem& files, const std::string& path,
                                  const RunConfig& config, bool force) {
  bool replaces = false;
  if (files.exists(join_path(path, kConfig))) {
    if (!force) {
      throw UsageError("run directory exists", path,
                       fmt::format("continue it with --resume {}, or use --force", path));
    }
    put_aside(files, path);
    replaces = true;
  } else if (files.exists(path) &&
             !(files.is_directory(path) && is_begun_only(files, path, config.model.program))) {
    throw UsageError("there is something else than a run", path,
                     "remove it yourself or choose another --run-dir");
  } else {
    replaces = files.exists(join_path(path, kReplaces));  // a start that was cut off
  }
  files.create_directories(path);
  RunDirectory run(files, path);
  if (replaces) run.write_text(kReplaces, base_name(aside(path)) + "\n");
  run.set_config(config);
  if (config.runs == 1) run.truncate_metrics(0);
  return run;
}

RunDirectory RunDirectory::open(FileSystem& files, const std::string& path) {
  const std::string config_path = join_path(path, kConfig);
  if (!files.exists(config_path)) {
    throw DataError("not a run directory (no config.toml)", path,
                    "name a directory that ooc-train made");
  }
  RunDirectory run(files, path);
  run.config_ = run_config_from_toml(text_of(files, config_path), config_path);
  run.config_.model.program = text_of(files, run.at(kProgram));
  return run;
}

void RunDirectory::write_text(const std::string& name, const std::string& text) {
  write_file_atomically(*files_, at(name), std::as_bytes(std::span(text)));
}

void RunDirectory::set_config(const RunConfig& config) {
  // A run that goes on has no result meanwhile.
  if (config.epochs != config_.epochs || config.patience != config_.patience) {
    files_->remove_all(at(kSummary));
  }
  config_ = config;
  write_text(kProgram, config.model.program);
  write_text(kConfig, to_toml(config));
}

void RunDirectory::write_plan(const Json& plan) { write_text(kPlan, plan.dump(2) + "\n"); }

Json RunDirectory::plan() const {
  if (!files_->exists(at(kPlan))) return nullptr;
  return Json::parse(text_of(*files_, at(kPlan)), nullptr, false);
}

std::string RunDirectory::checkpoint_path(const TrainedTo& to) const {
  const std::string batch = to.batches > 0 ? fmt::format("{}{}", kBatchMark, to.batches) : "";
  return at(fmt::format("{}{}{}{}", kCheckpointPrefix, to.epoch, batch, kCheckpointSuffix));
}

std::string RunDirectory::best_path() const { return at("best.h5"); }

std::optional<TrainedTo> RunDirectory::latest_checkpoint_at() const {
  std::optional<TrainedTo> latest;
  for (const std::string& name : files_->list(path_)) {
    const std::optional<TrainedTo> found = trained_to(name);
    if (found && (!latest || *found > *latest)) latest = found;
  }
  return latest;
}

std::optional<Checkpoint> RunDirectory::latest_checkpoint(DType real) const {
  const std::optional<TrainedTo> latest = latest_checkpoint_at();
  if (!latest) return std::nullopt;
  return read_checkpoint(*files_, checkpoint_path(*latest), real);
}

void RunDirectory::write_checkpoint(const Checkpoint& checkpoint, DType real) {
  // In this order, so that a checkpoint never is without what belongs to it.
  metrics_->sync();
  if (checkpoint.state.best.epoch != best_written_) write_best(checkpoint, real);
  const TrainedTo written = checkpoint.state.trained_to();
  ooc::write_checkpoint(*files_, checkpoint_path(written), checkpoint, real);
  for (const std::string& name : files_->list(path_)) {
    const std::optional<TrainedTo> found = trained_to(name);
    if (found && found->batches > 0 && *found < written) files_->remove_all(at(name));
  }
}

void RunDirectory::write_best(const Checkpoint& checkpoint, DType real) {
  if (checkpoint.state.best.epoch == 0) return;
  ooc::write_best(*files_, best_path(), checkpoint, real);
  best_written_ = checkpoint.state.best.epoch;
}

std::optional<Json> RunDirectory::summary() const {
  if (!files_->exists(at(kSummary))) return std::nullopt;
  const Json summary = Json::parse(text_of(*files_, at(kSummary)), nullptr, false);
  if (!summary.is_object()) {
    throw DataError("not a run's summary", at(kSummary), "remove it and resume the run");
  }
  return summary;
}

void RunDirectory::write_summary(const Json& summary) {
  write_text(kSummary, summary.dump(2) + "\n");
  if (!files_->exists(at(kReplaces))) return;
  files_->remove_all(aside(path_));
  files_->remove_all(at(kReplaces));
}

std::vector<EpochNumbers> RunDirectory::truncate_metrics(std::int64_t epoch) {
  std::vector<EpochNumbers> epochs;
  metrics_bytes_ = 0;
  if (epoch > 0 && files_->exists(at(kMetricLines))) {
    for_each_line(*files_->open(at(kMetricLines)), [&](std::string_view line) {
      const auto next = static_cast<std::int64_t>(epochs.size()) + 1;
      const Json json = Json::parse(line, nullptr, false);
      const std::optional<EpochNumbers> numbers = epoch_numbers(json);
      if (!numbers || json.value("epoch", Json()) != next) return false;
      epochs.push_back(*numbers);
      metrics_bytes_ += line.size() + 1;
      return next < epoch;
    });
  }
  if (static_cast<std::int64_t>(epochs.size()) != epoch) {
    throw DataError(fmt::format("the line of epoch {} is missing or damaged", epochs.size() + 1),
                    at(kMetricLines), "train anew, or put back the file as it was");
  }
  if (epoch == 0) write_text(kMetricLines, "");
  metrics_ = files_->update(at(kMetricLines));
  metrics_->truncate(metrics_bytes_);
  return epochs;
}

void RunDirectory::append_metrics(const Json& line) {
  const std::string text = line.dump() + "\n";
  metrics_->write_at(metrics_bytes_, std::as_bytes(std::span(text)));
  metrics_bytes_ += text.size();
}

std::optional<EpochNumbers> epoch_numbers(const Json& line) {
  EpochNumbers numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!line.is_object() || !line.contains(kEpochNumbers[i])) return std::nullopt;
    const Json& number = line[kEpochNumbers[i]];
    if (!number.is_number()) return std::nullopt;
    numbers[i] = number.get<double>();
  }
  return numbers;
}

Json json_number(double value) { return std::isnan(value) ? Json(nullptr) : Json(value); }

namespace {

Json scores_json(const Scores& scores) {
  return {{"train", json_number(scores.train)},
          {"valid", json_number(scores.valid)},
          {"test", json_number(scores.test)}};
}

void add_counters(Json& to, const RunCounters& counters) {
  to["bytes_read"] = counters.bytes_read - counters.zeros_read;
  to["bytes_written"] = counters.bytes_written - counters.zeros_written;
  to["zeros_read"] = counters.zeros_read;
  to["zeros_written"] = counters.zeros_written;
  to["bytes_to_device"] = counters.bytes_to_device;
  to["bytes_from_device"] = counters.bytes_from_device;
  to["bytes_between_devices"] = counters.bytes_between_devices;
}

Json links_of(const RunCounters& counters) {
  return {{"bytes_to_device", counters.bytes_to_device},
          {"bytes_from_device", counters.bytes_from_device},
          {"bytes_between_devices", counters.bytes_between_devices},
          {"compute_seconds", counters.compute_seconds}};
}

void add_waits(Json& to, const RunCounters& counters) {
  to["read_wait_seconds"] = counters.read_wait_seconds;
  to["write_wait_seconds"] = counters.write_wait_seconds;
  to["compute_wait_seconds"] = counters.compute_wait_seconds;
}

}  // namespace

Json passes_of(const EpochRecord& record, const Plan& plan) {
  Json passes = Json::array();
  for (const auto& [section, reports] : record.sections) {
    for (std::size_t pass = 0; pass < reports.size(); ++pass) {
      Json line;
      line["name"] = plan.sections[static_cast<std::size_t>(section)].passes[pass].name;
      line["seconds"] = reports[pass].seconds;
      add_counters(line, reports[pass].counters);
      line["compute_seconds"] = reports[pass].counters.compute_seconds;
      add_waits(line, reports[pass].counters);
      for (const RunCounters& device : reports[pass].devices) {
        line["devices"].push_back(links_of(device));
      }
      passes.push_back(std::move(line));
    }
  }
  return passes;
}

Json metrics_line(const EpochRecord& record, const std::vector<Metric>& metrics,
                  const Json& passes) {
  std::vector<Scores> scores = record.scores;
  scores.resize(metrics.size());
  Json line;
  line["epoch"] = record.epoch;
  line["loss"] = record.loss;
  line["lr"] = record.lr;
  line.update(scores_json(scores.front()));
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    line["metrics"][word_of(kMetrics, metrics[i])] = scores_json(scores[i]);
  }
  line["valid_loss"] = json_number(record.valid_loss);
  line["seconds"] = record.train_seconds + record.eval_seconds;
  line["train_seconds"] = record.train_seconds;
  line["eval_seconds"] = record.eval_seconds;
  add_counters(line, record.counters);
  line["compute_busy"] = record.compute_busy;
  if (!record.devices_busy.empty()) line["devices_busy"] = record.devices_busy;
  for (const Topology::LinkBytes& link : record.links) line["links"][link.link] = link.bytes;
  add_waits(line, record.counters);
  line["peak_host_bytes"] = peak_host_bytes();
  line["peak_device_bytes"] = record.peak_device_bytes;
  line["passes"] = passes;
  return line;
}

}  // namespace ooc
