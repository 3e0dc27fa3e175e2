#include "engine/train/seed_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

std::string path_of(const RunDirectory& outer, std::int64_t seed) {
  return join_path(outer.path(), fmt::format("seed-{}", seed));
}

bool is_there(FileSystem& files, const std::string& path) {
  return files.exists(join_path(path, "config.toml"));
}

RunDirectory open_run(FileSystem& files, const RunDirectory& outer, std::int64_t seed) {
  RunConfig config = outer.config();
  config.seed = seed;
  config.runs = 1;
  const std::string path = path_of(outer, seed);
  if (!is_there(files, path)) {
    files.remove_all(path);  // what a start left that was cut off at once
    return RunDirectory::create(files, path, config, false);
  }
  RunDirectory run = RunDirectory::open(files, path);
  if (run.config() != config) run.set_config(config);  // options that may change on resume
  return run;
}

std::vector<RunDirectory> begun_seeds(FileSystem& files, const RunDirectory& outer) {
  std::vector<RunDirectory> runs;
  if (outer.config().runs == 1) return runs;
  for (std::int64_t i = 0; i < outer.config().runs; ++i) {
    const std::string path = path_of(outer, outer.config().seed + i);
    if (is_there(files, path)) runs.push_back(RunDirectory::open(files, path));
  }
  return runs;
}

// Adds mean and sample standard deviation of a figure of all runs; null where one is.
void add_spread(const std::vector<Json>& runs, const std::string& key, Json& to) {
  double sum = 0, squares = 0;
  bool defined = true;
  for (const Json& run : runs) {
    defined = defined && run.at(key).is_number();
    if (defined) sum += run.at(key).get<double>();
  }
  const auto count = static_cast<double>(runs.size());
  for (const Json& run : runs) {
    if (defined) squares += std::pow(run.at(key).get<double>() - sum / count, 2);
  }
  to[key] = defined ? Json(sum / count) : Json(nullptr);
  to[key + "_deviation"] =
      defined && runs.size() > 1 ? Json(std::sqrt(squares / (count - 1))) : Json(nullptr);
}

// Runs that an older version finished have no figures by metric.
void add_metrics(const std::vector<Json>& runs, Json& summary) {
  const auto has_metrics = [](const Json& run) { return run.contains("metrics"); };
  if (!std::all_of(runs.begin(), runs.end(), has_metrics)) return;
  for (const auto& [metric, figures] : runs.front().at("metrics").items()) {
    std::vector<Json> of_metric;
    for (const Json& run : runs) of_metric.push_back(run.at("metrics").at(metric));
    for (const auto& [key, figure] : figures.items()) {
      add_spread(of_metric, key, summary["metrics"][metric]);
    }
  }
}

Json summarise(const std::vector<Json>& runs) {
  Json summary;
  summary["metric"] = runs.front().at("metric");
  summary["runs"] = runs.size();
  for (const char* key : {"best_valid", "test", "last_test"}) add_spread(runs, key, summary);
  add_metrics(runs, summary);
  summary["seeds"] = runs;
  return summary;
}

}  // namespace

RunResult run_seeds(FileSystem& files, RunDirectory& outer,
                    const std::function<RunResult(RunDirectory&)>& train) {
  const std::int64_t first = outer.config().seed;
  RunResult result;
  result.outcome = RunOutcome::kFinishedBefore;
  std::vector<Json> summaries;
  for (std::int64_t seed = first; seed < first + outer.config().runs; ++seed) {
    RunDirectory run = open_run(files, outer, seed);
    const RunResult one = train(run);
    result.epochs = one.epochs;
    if (one.outcome == RunOutcome::kInterrupted) {
      result.outcome = RunOutcome::kInterrupted;
      return result;
    }
    if (one.outcome == RunOutcome::kFinished) result.outcome = RunOutcome::kFinished;
    Json summary;
    summary["seed"] = seed;
    summary.update(one.summary);
    summaries.push_back(std::move(summary));
  }
  result.summary = summarise(summaries);
  if (!outer.summary()) result.outcome = RunOutcome::kFinished;
  if (result.outcome == RunOutcome::kFinished) outer.write_summary(result.summary);
  return result;
}

std::int64_t epochs_done(FileSystem& files, const RunDirectory& run) {
  std::int64_t done = run.latest_checkpoint_at().value_or(TrainedTo{}).epoch;
  for (const RunDirectory& seed : begun_seeds(files, run)) {
    done = std::max(done, epochs_done(files, seed));
  }
  return done;
}

std::string trained_dataset(FileSystem& files, const RunDirectory& run) {
  if (const auto latest = run.latest_checkpoint_at()) {
    return read_model(files, run.checkpoint_path(*latest), DType::kF32).dataset_checksum;
  }
  for (const RunDirectory& seed : begun_seeds(files, run)) {
    std::string checksum = trained_dataset(files, seed);
    if (!checksum.empty()) return checksum;
  }
  return "";
}

}  // namespace ooc
