#include "engine/training_run.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/model_words.h"
#include "engine/host_memory.h"
#include "kernels/blas.h"

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Of a whole number, rounded down.
std::int64_t mean_of(const std::vector<Json>& lines, const char* key) {
  std::int64_t sum = 0;
  for (const Json& line : lines) sum += line.at(key).get<std::int64_t>();
  return lines.empty() ? 0 : sum / static_cast<std::int64_t>(lines.size());
}

Json summarise(const Trainer& trainer, const std::vector<Json>& lines) {
  const TrainingState& state = trainer.state();
  std::vector<double> seconds;
  for (const Json& line : lines) seconds.push_back(line.at("seconds").get<double>());
  Json summary;
  summary["metric"] = word_of(kMetrics, trainer.config().metric);
  summary["best_valid"] = json_number(state.best.scores.valid);
  summary["best_epoch"] = state.best.epoch;
  summary["test"] = json_number(state.best.scores.test);
  summary["last_test"] = json_number(state.last.test);
  summary["epochs"] = state.epoch;
  summary["epoch_seconds_median"] = median(std::move(seconds));
  summary["bytes_read_per_epoch"] = mean_of(lines, "bytes_read");
  summary["bytes_written_per_epoch"] = mean_of(lines, "bytes_written");
  summary["peak_host_bytes"] = peak_host_bytes();
  summary["peak_device_bytes"] = 0;
  summary["plan_predicted_bytes"] = trainer.planned_bytes();
  // The resident plan predicts no times.
  summary["plan_predicted_seconds"] = nullptr;
  summary["plan_lower_bound_seconds"] = nullptr;
  return summary;
}

bool done(const RunConfig& config, const TrainingState& state) {
  const bool impatient = config.patience > 0 && state.evaluations_since_best >= config.patience;
  return state.epoch >= config.epochs || impatient;
}

}  // namespace

Json plan_of(const Trainer& trainer) {
  Json plan;
  plan["training"] = plan_to_json(trainer.training().program(), trainer.training().plan());
  plan["evaluation"] = plan_to_json(trainer.evaluation().program(), trainer.evaluation().plan());
  // Chosen by the machine, and part of what makes results equal to the last bit.
  plan["blas_core"] = blas_core();
  plan["computed_once"] = Json::object();
  for (const auto& [name, bytes] : trainer.precomputed_bytes()) plan["computed_once"][name] = bytes;
  plan["bytes_read_per_epoch"] = trainer.planned_bytes();
  plan["device_bytes"] = trainer.planned_device_bytes();
  return plan;
}

RunResult run_training(RunDirectory& run, Trainer& trainer, const std::atomic<bool>* stop,
                       const std::function<void(const EpochRecord&)>& on_epoch) {
  const RunConfig& config = run.config();
  std::optional<Checkpoint> checkpoint = run.latest_checkpoint(trainer.real());
  if (checkpoint) {
    const std::string where = run.checkpoint_path(checkpoint->state.epoch);
    trainer.restore(std::move(*checkpoint), where);
    run.write_best(trainer.checkpoint(), trainer.real());
  }
  const std::optional<Json> finished = run.summary();
  if (finished && done(config, trainer.state())) {
    return {RunOutcome::kFinishedBefore, trainer.state().epoch, *finished};
  }
  std::vector<Json> lines = run.truncate_metrics(trainer.state().epoch);
  std::int64_t written = trainer.state().epoch;  // epoch of the newest checkpoint
  if (written == 0) run.write_plan(plan_of(trainer));
  while (!done(config, trainer.state())) {
    const std::optional<EpochRecord> record = trainer.run_epoch(stop);
    if (!record) break;
    lines.push_back(metrics_line(*record));
    run.append_metrics(lines.back());
    on_epoch(*record);
    if (record->epoch % config.checkpoint_every == 0 || done(config, trainer.state())) {
      run.write_checkpoint(trainer.checkpoint(), trainer.real());
      written = record->epoch;
    }
  }
  const std::int64_t epoch = trainer.state().epoch;
  if (!done(config, trainer.state())) {  // interrupted
    if (epoch > written) run.write_checkpoint(trainer.checkpoint(), trainer.real());
    return {RunOutcome::kInterrupted, epoch, {}};
  }
  Json summary = summarise(trainer, lines);
  run.write_summary(summary);
  return {RunOutcome::kFinished, epoch, std::move(summary)};
}

}  // namespace ooc
