#include "engine/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/machine/devices.h"
#include "engine/machine/elapsed.h"
#include "engine/metrics/metrics.h"
#include "engine/train/config_words.h"
#include "engine/train/run_directory.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

// Of the passes of an epoch, by device.
std::vector<RunCounters> counters_of_devices(const EpochRecord& record) {
  std::vector<RunCounters> sums;
  for (const EpochRecord::SectionRun& section : record.sections) {
    for (const PassReport& pass : section.passes) {
      const std::vector<RunCounters> alone{pass.counters};
      const std::vector<RunCounters>& devices = pass.devices.empty() ? alone : pass.devices;
      sums.resize(devices.size());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += devices[i];
    }
  }
  return sums;
}

// Of the time that passes took.
std::vector<double> busy_of_devices(const EpochRecord& record, std::int64_t workers) {
  double seconds = 0;
  for (const EpochRecord::SectionRun& section : record.sections) {
    for (const PassReport& pass : section.passes) seconds += pass.seconds;
  }
  std::vector<double> busy;
  for (const RunCounters& device : counters_of_devices(record)) {
    busy.push_back(device.compute_seconds / (seconds * static_cast<double>(workers)));
  }
  return busy;
}

}  // namespace

std::shared_ptr<const TrainingPlan> plan_training(const Dataset& dataset, const RunConfig& config,
                                                  RunBudget budget, DType real) {
  check_trainable(dataset, config);
  budget.plan.workers = workers_of(budget.plan.devices);
  return std::make_shared<const TrainingPlan>(
      config, facts_of(dataset), counts_of(dataset, budget.plan.devices), real, budget);
}

Trainer::Trainer(Backend& backend, BlockIo& io, const Dataset& dataset, const RunConfig& config,
                 const TrainerOptions& options)
    : Trainer(backend, io, dataset, config, options,
              options.plan ? options.plan
                           : plan_training(dataset, config, options.budget, options.real)) {}

Trainer::Trainer(Backend& backend, BlockIo& io, const Dataset& dataset, const RunConfig& config,
                 const TrainerOptions& options, std::shared_ptr<const TrainingPlan> plan)
    : EpochTrainer(backend, io, trained_data(dataset, config), config, options.real,
                   plan->training().model().parameters),
      dataset_(dataset),
      options_(options),
      plan_(std::move(plan)),
      inputs_(io, dataset) {
  OOC_CHECK(plan_->workers() == workers_of(1 + std::ssize(options.others)));
  OOC_CHECK(plan_->training().real() == options_.real);
}

RunResources Trainer::resources() const {
  return {backend_,        io_,           dataset_, options_.scratch, plan_->workers(),
          options_.others, options_.trace};
}

std::int64_t Trainer::peak_device_bytes() const {
  std::int64_t peak = backend_.memory_peak();
  for (const Backend* other : options_.others) peak = std::max(peak, other->memory_peak());
  return peak;
}

nlohmann::ordered_json Trainer::plan_json() const { return plan_->json(); }

nlohmann::ordered_json Trainer::passes_json(const EpochRecord& record) const {
  return passes_of(record, plan_->epoch_plan());
}

EpochForecast Trainer::forecast() const {
  const Plan& epoch = plan_->epoch_plan();
  return {plan_->bytes_read() + plan_->bytes_written(), epoch.seconds, epoch.bound_seconds};
}

bool Trainer::prepare(const std::atomic<bool>* stop) {
  stop_ = stop;
  if (run_) return true;
  if (!compute_once()) return false;
  run_ = std::make_unique<ProgramRun>(resources(), plan_->programs(), plan_->epoch_plan(), inputs_,
                                      parameters_);
  return true;
}

bool Trainer::compute_once() {
  const Precompute& precompute = plan_->precompute();
  if (precompute.empty()) return true;
  // What the epochs will store has to find room before anything is computed.
  std::unique_ptr<BlockFile> room;
  if (plan_->epoch_plan().stored_bytes > 0) {
    room = io_.create_temporary(options_.scratch,
                                static_cast<std::uint64_t>(plan_->epoch_plan().stored_bytes));
  }
  Executor executor(resources(), precompute.programs(), plan_->precompute_plan(), inputs_.stores());
  for (int section = 0; section < static_cast<int>(precompute.programs().size()); ++section) {
    if (!executor.run(section, {}, stop_)) return false;
  }
  if (const auto zeros = precompute.zero_factors(); zeros && options_.warns_of_data) {
    warn_of_zero_factors(read_reduction(backend_, executor, zeros->first, zeros->second, 1)[0]);
  }
  for (auto& [name, store] : precompute.release(executor)) inputs_.add(name, std::move(store));
  return true;
}

std::optional<EpochRecord> Trainer::run_epoch(const std::atomic<bool>* stop) {
  if (!prepare(stop)) return std::nullopt;
  EpochRecord record;
  record.epoch = state_.epoch + 1;
  record.lr = learning_rate(config_, record.epoch);
  const auto begin = std::chrono::steady_clock::now();
  run_->take_counters();
  if (!(plan_->evaluates_in_step() ? evaluate_in_next_step(record) : train_and_evaluate(record))) {
    parameters_.restore(state_.parameters, "memory");  // the partial epoch is dropped
    next_loss_.reset();
    return std::nullopt;
  }
  record.counters += run_->take_counters();
  record.compute_busy =
      record.counters.compute_seconds /
      (seconds_since(begin) * static_cast<double>(plan_->workers() * plan_->devices()));
  if (plan_->devices() > 1) record.devices_busy = busy_of_devices(record, plan_->workers());
  if (const auto& topology = options_.budget.topology) {
    record.links = topology->bytes_of_links(counters_of_devices(record));
  }
  record.peak_device_bytes = peak_device_bytes();
  state_.epoch = record.epoch;
  if (!record.scores.empty()) keep_if_best(record);
  return record;
}

bool Trainer::train_and_evaluate(EpochRecord& record) {
  const auto begin = std::chrono::steady_clock::now();
  const std::optional<double> loss = run_step(record.epoch);
  if (!loss) return false;
  record.loss = *loss;
  check_finite(record.loss, "loss", record.epoch);
  update_parameters(record.epoch);
  record.sections.push_back({kTraining, run_->reports(kTraining)});
  record.train_seconds = seconds_since(begin);
  const bool last = record.epoch == config_.epochs;
  if (record.epoch % config_.eval_every == 0 || last) {
    const auto trained_at = std::chrono::steady_clock::now();
    const int section = plan_->evaluation_section();
    if (!run_->run(section, {}, stop_) || !read_scores(record)) return false;
    record.sections.push_back({section, run_->reports(section)});
    record.eval_seconds = seconds_since(trained_at);
  }
  state_.parameters = parameters_.capture();
  return true;
}

// The step of the epoch was run by the one before it, unless that was another run's.
bool Trainer::evaluate_in_next_step(EpochRecord& record) {
  const auto begin = std::chrono::steady_clock::now();
  const auto step = [&](std::int64_t epoch) {
    next_loss_ = run_step(epoch);
    if (next_loss_) record.sections.push_back({kTraining, run_->reports(kTraining)});
    return next_loss_.has_value();
  };
  if (!next_loss_ && !step(record.epoch)) return false;
  record.loss = *next_loss_;
  check_finite(record.loss, "loss", record.epoch);
  update_parameters(record.epoch);
  if (!step(record.epoch + 1)) return false;
  record.train_seconds = seconds_since(begin);
  if (!read_scores(record)) return false;
  state_.parameters = parameters_.capture();
  record.eval_seconds = seconds_since(begin) - record.train_seconds;
  return true;
}

std::optional<double> Trainer::run_step(std::int64_t epoch) {
  const StepSeed run{static_cast<std::uint64_t>(config_.seed), static_cast<std::uint64_t>(epoch)};
  if (!run_->run(kTraining, run, stop_)) return std::nullopt;
  return run_->losses(kTraining, plan_->training().model().loss)[0].loss;
}

void Trainer::update_parameters(std::int64_t epoch) {
  const OptimizerOptions options = optimizer(epoch);
  const Model& model = plan_->training().model();
  for (const ModelParameter& parameter : model.parameters) {
    if (!parameter.trainable) continue;
    parameters_.optimize(parameter.name, run_->gradient(kTraining, parameter), epoch, options);
  }
  for (const BatchStatistics& statistics : model.batch_statistics) {
    const std::vector<double> sums = run_->read_reduction(kTraining, statistics.sums);
    parameters_.update_statistics(statistics, sums.data(), dataset_.vertices());
  }
}

bool Trainer::read_scores(EpochRecord& record) {
  const int section = plan_->evaluation_section();
  const Evaluated evaluated = plan_->evaluation().evaluated();
  const std::array<SplitLoss, 3> losses = run_->losses(section, evaluated.loss);
  record.valid_loss = losses[1].loss;
  // The step may have been the one that broke the model: it must not become the best one.
  check_finite(losses[0].loss, "loss after the step", record.epoch);
  auto scores = run_scores(*run_, section, evaluated, inputs_, config_.metrics, config_.model.task,
                           record.counters.bytes_read, stop_);
  if (scores) record.scores = std::move(*scores);
  return scores.has_value();
}

}  // namespace ooc
