// A run directory: config.toml, program.saga (the model's program as it was when the run began),
// plan.json, metrics.jsonl, checkpoints, best.h5, summary.json. Of several seeds' runs:
// config.toml, program.saga, summary.json, and a run directory a seed (engine/train/seed_runs.h).
#pragma once

#include <array>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/train/checkpoint.h"
#include "engine/train/epoch_trainer.h"
#include "engine/train/run_config.h"
#include "storage/io/file.h"

namespace ooc {

// The numbers of an epoch that a summary has medians of, and their names in its line of
// metrics.jsonl: all of it that a run keeps in memory.
inline constexpr std::array kEpochNumbers{"seconds",           "bytes_read",
                                          "bytes_written",     "bytes_to_device",
                                          "bytes_from_device", "bytes_between_devices"};
using EpochNumbers = std::array<double, kEpochNumbers.size()>;
// Nothing where one of them is missing.
std::optional<EpochNumbers> epoch_numbers(const nlohmann::ordered_json& line);

// While there, no other process trains the run in this directory: UsageError where one does.
class RunLock {
 public:
  RunLock(FileSystem& files, const std::string& run);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  FileSystem& files_;
  std::string path_;
  std::unique_ptr<FileLock> lock_;
};

// One thread. Errors of the file system pass through.
class RunDirectory {
 public:
  // A new directory with its config.toml. UsageError if `path` exists and isn't empty, unless
  // `force`: then the run there is kept as `path`.replaced until this one has finished. With
  // `force` a path that is no run directory is a UsageError as well, and one that a process trains.
  static RunDirectory create(FileSystem& files, const std::string& path, const RunConfig& config,
                             bool force);
  // An existing one. DataError if it is none.
  static RunDirectory open(FileSystem& files, const std::string& path);

  const std::string& path() const { return path_; }
  const RunConfig& config() const { return config_; }
  // Replaces config.toml, for options that may change on resume. With other epochs or patience the
  // run is one that hasn't ended.
  void set_config(const RunConfig& config);

  void write_plan(const nlohmann::ordered_json& plan);
  nlohmann::ordered_json plan() const;  // as last written; null where there is none
  std::optional<TrainedTo> latest_checkpoint_at() const;
  // The newest checkpoint; nothing if none was written. Damaged ones are an error, not skipped.
  std::optional<Checkpoint> latest_checkpoint(DType real) const;
  // "checkpoint-12.h5"; inside an epoch "checkpoint-12-batch-3000.h5".
  std::string checkpoint_path(const TrainedTo& to) const;
  std::string best_path() const;
  // Also best.h5, where it isn't the checkpoint's best yet, and makes metrics.jsonl durable.
  // Earlier ones inside an epoch go.
  void write_checkpoint(const Checkpoint& checkpoint, DType real);
  void write_best(const Checkpoint& checkpoint, DType real);
  // Whether the run has ended by itself: its summary, as written.
  std::optional<nlohmann::ordered_json> summary() const;
  // Makes the run complete; a run that --force kept aside goes.
  void write_summary(const nlohmann::ordered_json& summary);

  // Cuts off the lines of metrics.jsonl after `epoch`, and a torn last line; returns the numbers of
  // those kept. DataError, and nothing is cut, if they aren't those of the epochs 1 to `epoch`.
  std::vector<EpochNumbers> truncate_metrics(std::int64_t epoch);
  // Appends one line; it survives the process, and from the next checkpoint on the machine.
  void append_metrics(const nlohmann::ordered_json& line);

 private:
  RunDirectory(FileSystem& files, std::string path) : files_(&files), path_(std::move(path)) {}
  std::string at(const std::string& name) const { return join_path(path_, name); }
  void write_text(const std::string& name, const std::string& text);

  FileSystem* files_;
  std::string path_;
  RunConfig config_;
  std::unique_ptr<WritableFile> metrics_;
  std::uint64_t metrics_bytes_ = 0;
  std::int64_t best_written_ = 0;  // epoch of best.h5
};

// The number, or null for NaN.
nlohmann::ordered_json json_number(double value);
// A line of metrics.jsonl; "train", "valid" and "test" are of the first metric, "metrics" has all;
// `passes` says what each pass of the epoch did.
nlohmann::ordered_json metrics_line(const EpochRecord& record, const std::vector<Metric>& metrics,
                                    const nlohmann::ordered_json& passes);
// Those of a plan.
nlohmann::ordered_json passes_of(const EpochRecord& record, const Plan& plan);

}  // namespace ooc
