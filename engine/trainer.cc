#include "engine/trainer.h"

#include <fmt/format.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "engine/metrics.h"
#include "engine/model_words.h"
#include "storage/errors.h"

namespace ooc {
namespace {

const Dataset& check_trainable(const Dataset& dataset, const RunConfig& config) {
  const auto require = [&](bool holds, const char* what, const char* remedy) {
    if (!holds) throw DataError(what, dataset.path(), remedy);
  };
  require(dataset.tensor("features") != nullptr, "dataset without features, training needs them",
          "import it with --features");
  require(dataset.tensor("labels") != nullptr, "dataset without labels, training needs them",
          "import it with --labels");
  const Task task = config.model.task;
  check_task(task, dataset.manifest(), dataset.path());
  check_metric(config.metric, task, dataset.manifest().classes);
  if (config.momentum != 0 && config.optimizer != OptimizerKind::kSgd) {
    throw UsageError(fmt::format("--momentum {}", config.momentum),
                     fmt::format("--optimizer {}", word_of(kOptimizers, config.optimizer)),
                     "momentum is sgd's: leave one of them out");
  }
  require(dataset.has_splits(), "dataset without splits, training needs a train split",
          "import it with --train, --valid and --test");
  require(dataset.manifest().split_counts[0] > 0, "dataset with an empty train split",
          "import it with --train");
  dataset.check_labels();
  return dataset;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void check_finite(double loss, const char* what, std::int64_t epoch) {
  if (std::isfinite(loss)) return;
  throw RunError(fmt::format("the {} is {}", what, loss), fmt::format("epoch {}", epoch),
                 "try a smaller --lr");
}

Wanted wanted_of_evaluation(const RunConfig& config) {
  return {.logits = needs_logits(config.metric, config.model.task)};
}

}  // namespace

Trainer::Trainer(Backend& backend, const Dataset& dataset, const RunConfig& config, DType real,
                 std::int64_t span_group)
    : backend_(backend),
      dataset_(check_trainable(dataset, config)),
      config_(config),
      real_(real),
      training_(config.model, facts_of(dataset), counts_of(dataset), Mode::kTrain,
                {.gradients = true}, real, {parse_rewrites(config.rewrites), span_group}),
      evaluation_(config.model, facts_of(dataset), counts_of(dataset), Mode::kEvaluate,
                  wanted_of_evaluation(config), real,
                  {parse_rewrites(config.rewrites), span_group}),
      inputs_(dataset),
      parameters_(backend, real, training_.model().parameters) {
  parameters_.initialise(static_cast<std::uint64_t>(config.seed));
  if (config.model.class_weights == ClassWeights::kBalanced) {
    parameters_.set(kClassWeightsParameter, balanced_weights(dataset));
  }
  state_.parameters = parameters_.capture();
}

bool Trainer::prepare(const std::atomic<bool>* stop) {
  if (prepared_) return true;
  for (const ModelProgram* program : {&training_, &evaluation_}) {
    if (!compute_once(program->precomputed(), backend_, dataset_, inputs_, stop)) return false;
  }
  const std::int64_t arena_bytes =
      std::max(training_.plan().arena_bytes, evaluation_.plan().arena_bytes);
  const Arena arena = backend_.allocate(static_cast<std::size_t>(arena_bytes));
  training_.bind(backend_, dataset_, inputs_, arena, parameters_);
  evaluation_.bind(backend_, dataset_, inputs_, arena, parameters_);
  prepared_ = true;
  return true;
}

std::int64_t Trainer::planned_bytes() const {
  const Task task = config_.model.task;
  const auto& sources = inputs_.sources();
  return training_.plan().bytes_read + evaluation_.plan().bytes_read +
         metric_bytes(config_.metric, task, *sources.at("labels"), *sources.at("splits"));
}

std::map<std::string, std::int64_t> Trainer::precomputed_bytes() const {
  std::map<std::string, std::int64_t> bytes;
  for (const ModelProgram* program : {&training_, &evaluation_}) {
    for (const Hoisted& hoisted : program->precomputed().tensors) {
      bytes[hoisted.input] = resident_bytes(
          {dataset_.vertices(), hoisted.cols, dataset_.manifest().edges.block_rows}, real_);
    }
  }
  return bytes;
}

std::int64_t Trainer::planned_device_bytes() const {
  const std::int64_t workers = tbb::this_task_arena::max_concurrency();
  std::int64_t inputs = inputs_.memory_bytes();
  for (const auto& [name, bytes] : precomputed_bytes()) inputs += prepared_ ? 0 : bytes;
  std::int64_t arena = std::max(training_.plan().arena_bytes, evaluation_.plan().arena_bytes);
  for (const ModelProgram* program : {&training_, &evaluation_}) {
    arena = std::max(arena, arena_bytes_once(program->precomputed(), counts_of(dataset_)));
  }
  return inputs + arena +
         workers * (training_.plan().scratch_bytes + evaluation_.plan().scratch_bytes) +
         parameters_.bytes() + training_.sum_bytes();
}

Checkpoint Trainer::checkpoint() const {
  const Manifest& manifest = dataset_.manifest();
  return {config_,          manifest.checksum,   manifest.feature_cols,
          manifest.classes, manifest.edge_types, state_};
}

void Trainer::restore(Checkpoint checkpoint, const std::string& where) {
  if (checkpoint.dataset_checksum != dataset_.manifest().checksum) {
    throw DataError(
        fmt::format("the run was trained on another dataset than {} is now", dataset_.path()),
        where, "bring the dataset back as it was, or train anew");
  }
  parameters_.restore(checkpoint.state.parameters, where);
  state_ = std::move(checkpoint.state);
}

std::optional<EpochRecord> Trainer::run_epoch(const std::atomic<bool>* stop) {
  if (!prepare(stop)) return std::nullopt;
  EpochRecord record;
  record.epoch = state_.epoch + 1;
  record.lr = learning_rate(config_, record.epoch);
  const auto begin = std::chrono::steady_clock::now();
  training_.take_counters();
  evaluation_.take_counters();
  const bool last = record.epoch == config_.epochs;
  const bool due = record.epoch % config_.eval_every == 0 || last;
  if (!train(record, stop) || (due && !evaluate(record, stop))) {
    parameters_.restore(state_.parameters, "memory");  // the partial epoch is dropped
    return std::nullopt;
  }
  const RunCounters trained = training_.take_counters(), evaluated = evaluation_.take_counters();
  record.bytes_read += trained.bytes_read + evaluated.bytes_read;
  record.compute_busy = (trained.compute_seconds + evaluated.compute_seconds) /
                        (seconds_since(begin) * tbb::this_task_arena::max_concurrency());
  state_.epoch = record.epoch;
  state_.parameters = parameters_.capture();
  if (record.scores) keep_if_best(record, state_.parameters);
  return record;
}

bool Trainer::train(EpochRecord& record, const std::atomic<bool>* stop) {
  const auto begin = std::chrono::steady_clock::now();
  const RunState run{static_cast<std::uint64_t>(config_.seed),
                     static_cast<std::uint64_t>(record.epoch)};
  if (!training_.run(run, stop)) return false;
  record.loss = training_.losses()[0].loss;
  check_finite(record.loss, "loss", record.epoch);
  update_parameters(record.epoch, record.lr);
  record.train_seconds = seconds_since(begin);
  return true;
}

void Trainer::update_parameters(std::int64_t epoch, double lr) {
  const OptimizerOptions options{config_.optimizer, lr, config_.weight_decay, config_.momentum};
  for (const ModelParameter& parameter : training_.model().parameters) {
    if (!parameter.trainable) continue;
    parameters_.optimize(parameter.name, training_.gradient(parameter), epoch, options);
  }
  for (const BatchStatistics& statistics : training_.model().batch_statistics) {
    const std::vector<double> sums = training_.read_reduction(statistics.sums);
    parameters_.update_statistics(statistics, sums.data(), dataset_.vertices());
  }
}

bool Trainer::evaluate(EpochRecord& record, const std::atomic<bool>* stop) {
  const auto begin = std::chrono::steady_clock::now();
  if (!evaluation_.run({}, stop)) return false;
  const std::array<SplitLoss, 3> losses = evaluation_.losses();
  record.valid_loss = losses[1].loss;
  // The step may have been the one that broke the model: it must not become the best one.
  check_finite(losses[0].loss, "loss after the step", record.epoch);
  const MetricResult metric = run_scores(evaluation_, inputs_, config_.metric, config_.model.task);
  record.scores = metric.scores;
  record.bytes_read += metric.bytes_read;
  record.eval_seconds = seconds_since(begin);
  return true;
}

void Trainer::keep_if_best(const EpochRecord& record,
                           const std::vector<ParameterValues>& parameters) {
  state_.last = *record.scores;
  // Where the metric isn't defined, such as without a valid split, the latest evaluation counts as
  // the best; ties keep the earlier epoch.
  const BestModel& best = state_.best;
  if (best.epoch == 0 || std::isnan(best.scores.valid) ||
      record.scores->valid > best.scores.valid) {
    state_.best = {record.epoch, *record.scores, parameters};
    state_.evaluations_since_best = 0;
  } else {
    ++state_.evaluations_since_best;
  }
}

}  // namespace ooc
