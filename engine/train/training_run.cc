#include "engine/train/training_run.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "engine/machine/host_memory.h"
#include "engine/model/parts/words.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double median_of(const std::vector<EpochNumbers>& epochs, std::size_t number) {
  std::vector<double> values;
  values.reserve(epochs.size());
  for (const EpochNumbers& numbers : epochs) values.push_back(numbers[number]);
  return median(std::move(values));
}

// `best`: scores of the best model.
Json summarise(const EpochTrainer& trainer, const std::vector<Scores>& best,
               const std::vector<EpochNumbers>& epochs) {
  const TrainingState& state = trainer.state();
  Json summary;
  const std::vector<Metric>& metrics = trainer.config().metrics;
  summary["metric"] = word_of(kMetrics, metrics.front());
  summary["best_valid"] = json_number(best.front().valid);
  summary["best_epoch"] = state.best.epoch;
  summary["test"] = json_number(best.front().test);
  summary["last_test"] = json_number(state.last.front().test);
  // By samples it was chosen; the scores above are by all of the graph.
  if (trainer.scores_anew()) {
    const Scores& chosen = state.best.scores.front();
    summary["sampled"] = {{"valid", json_number(chosen.valid)}, {"test", json_number(chosen.test)}};
  }
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    summary["metrics"][word_of(kMetrics, metrics[i])] = {
        {"valid", json_number(best[i].valid)},
        {"test", json_number(best[i].test)},
        {"last_test", json_number(state.last[i].test)}};
  }
  summary["epochs"] = state.epoch;
  summary["epoch_seconds_median"] = median_of(epochs, 0);
  for (std::size_t i = 1; i < kEpochNumbers.size(); ++i) {
    summary[fmt::format("{}_per_epoch", kEpochNumbers[i])] =
        static_cast<std::int64_t>(std::llround(median_of(epochs, i)));
  }
  summary["io"] = trainer.io_name();
  summary["peak_host_bytes"] = peak_host_bytes();
  summary["peak_device_bytes"] = trainer.peak_device_bytes();
  const EpochForecast forecast = trainer.forecast();
  summary["plan_predicted_bytes"] = forecast.bytes;
  summary["plan_predicted_seconds"] = forecast.seconds;
  summary["plan_lower_bound_seconds"] = forecast.bound_seconds;
  return summary;
}

// Results are the same to the last bit on the same kernels alone.
void warn_of_other_kernels(const RunDirectory& run, const Json& plan) {
  const Json before = run.plan();
  if (!before.is_object() || !before.contains("blas_core")) return;
  const Json &core = before["blas_core"], &now = plan.at("blas_core");
  if (!core.is_string() || core == now) return;
  spdlog::warn(
      "OpenBLAS computes with other kernels than before, {} instead of {}: results may differ in "
      "the last bits from here on; OPENBLAS_CORETYPE={} brings them back, {}",
      now.get<std::string>(), core.get<std::string>(), core.get<std::string>(), run.path());
}

bool done(const RunConfig& config, const TrainingState& state) {
  const bool impatient = config.patience > 0 && state.evaluations_since_best >= config.patience;
  return state.epoch >= config.epochs || impatient;
}

// What was trained to before isn't lost; where it can't be saved, the error at hand says more.
void save_after_error(const EpochTrainer& trainer, const TrainedTo& written,
                      const std::function<void()>& save) {
  if (!(trainer.state().trained_to() > written)) return;
  try {
    save();
  } catch (...) {
  }
}

}  // namespace

RunResult run_training(RunDirectory& run, EpochTrainer& trainer, const std::atomic<bool>* stop,
                       const std::function<void(const EpochRecord&)>& on_epoch) {
  const RunConfig& config = run.config();
  std::optional<Checkpoint> checkpoint = run.latest_checkpoint(trainer.real());
  if (checkpoint) {
    const std::string where = run.checkpoint_path(checkpoint->state.trained_to());
    trainer.restore(std::move(*checkpoint), where);
    run.write_best(trainer.checkpoint(), trainer.real());
  }
  const std::optional<Json> finished = run.summary();
  // A summary of another epoch is one from before the run was made longer.
  const bool of_this_epoch = finished && finished->value("epochs", Json()) == trainer.state().epoch;
  if (of_this_epoch && done(config, trainer.state())) {
    return {RunOutcome::kFinishedBefore, trainer.state().epoch, *finished};
  }
  std::vector<EpochNumbers> epochs = run.truncate_metrics(trainer.state().epoch);
  TrainedTo written = trainer.state().trained_to();  // of the newest checkpoint
  const auto save = [&] {
    run.write_checkpoint(trainer.checkpoint(), trainer.real());
    written = trainer.state().trained_to();
  };
  trainer.save_inside_epochs(save);
  const Json plan = trainer.plan_json();
  if (written > TrainedTo{}) warn_of_other_kernels(run, plan);
  run.write_plan(plan);
  const auto run_epoch = [&] {
    try {
      return trainer.run_epoch(stop);
    } catch (const RunError&) {  // a loss that is none
      throw;
    } catch (...) {
      save_after_error(trainer, written, save);
      throw;
    }
  };
  while (!done(config, trainer.state())) {
    const std::optional<EpochRecord> record = run_epoch();
    if (!record) break;
    const Json line = metrics_line(*record, config.metrics, trainer.passes_json(*record));
    run.append_metrics(line);
    epochs.push_back(epoch_numbers(line).value());
    on_epoch(*record);
    if (record->epoch % config.checkpoint_every == 0 || done(config, trainer.state())) {
      save();
    }
  }
  const std::int64_t epoch = trainer.state().epoch;
  const bool is_done = done(config, trainer.state());
  const auto best = is_done ? trainer.final_scores(stop) : std::nullopt;
  if (!best) {  // interrupted
    if (trainer.state().trained_to() > written) save();
    return {RunOutcome::kInterrupted, epoch, {}};
  }
  Json summary = summarise(trainer, *best, epochs);
  run.write_summary(summary);
  return {RunOutcome::kFinished, epoch, std::move(summary)};
}

}  // namespace ooc
