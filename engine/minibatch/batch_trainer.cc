#include "engine/minibatch/batch_trainer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/batches/judged_rows.h"
#include "engine/machine/devices.h"
#include "engine/machine/elapsed.h"
#include "engine/metrics/metrics.h"
#include "engine/minibatch/batch_counts.h"
#include "engine/minibatch/sampled_batches.h"
#include "engine/minibatch/stored_batches.h"
#include "engine/train/program_run.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

// `kept_bytes`: of files that stay meanwhile.
void check_scratch(const Plan& evaluation, std::int64_t kept_bytes,
                   const BatchTrainerOptions& options) {
  const std::int64_t needed = evaluation.stored_bytes + kept_bytes;
  if (needed <= options.budget.scratch_bytes) return;
  throw IoError(
      fmt::format("too little space for temporary files: {} are free, an evaluation on "
                  "the whole graph needs {}",
                  format_byte_size(options.budget.scratch_bytes), format_byte_size(needed)),
      options.scratch.empty() ? "the run's directory" : options.scratch,
      "free some, name another directory (--scratch), give more --host-memory, or "
      "evaluate by samples alone (--eval-fanouts)");
}

// plan(budget), of batches and then of an evaluation on the whole graph, where that is `of_graph`:
// they have the memory in turn. A BudgetError names the least that both work in.
template <class Plan>
BatchPlan plan_both(const RunBudget& budget, const bool& of_graph, const Plan& plan) {
  constexpr std::int64_t kMiB = 1 << 20;
  RunBudget tried = budget;
  std::optional<BudgetError> refused;
  bool by_graph = false;
  for (;;) {
    try {
      BatchPlan planned = plan(tried);
      if (!refused) return planned;
      break;
    } catch (const BudgetError& error) {
      if (error.least_bytes <= tried.host_bytes) throw;
      refused = error;
      by_graph = of_graph;
      tried.host_bytes = error.least_bytes;
    }
  }
  if (!by_graph) throw BudgetError(*refused);
  BudgetError error(fmt::format("a memory budget of {} MiB is too small: the least that works is "
                                "{} MiB, for an evaluation on the whole graph",
                                budget.host_bytes / kMiB, ceil_div(tried.host_bytes, kMiB)),
                    "--host-memory",
                    "give more, or evaluate by samples alone (--eval-fanouts N,N,...)");
  error.least_bytes = tried.host_bytes;
  throw error;
}

}  // namespace

BatchTrainer::BatchTrainer(Backend& backend, BlockIo& io, FileSystem& files, const Dataset& dataset,
                           const RunConfig& config, const BatchTrainerOptions& options)
    : BatchTrainer(backend, io, (check_trainable(dataset, config), trained_data(dataset, config)),
                   config, options) {
  SampledCounts counts = sampled_counts(dataset);
  counts.degrees = degree_classes(dataset);
  const EvalFanouts& fanouts = config_.sampling.eval_fanouts;
  bool of_graph = false;
  BatchPlan plan = plan_both(options_.budget, of_graph, [&](const RunBudget& budget) {
    // Of what batches gave back the allocator keeps some.
    constexpr std::int64_t kAllocatorKeeps = 4 << 20;
    of_graph = false;
    BatchPlan batches =
        plan_batches(config_, programs_, training_, evaluation_, counts, budget, options_.scratch);
    of_graph = fanouts.exact || fanouts.empty();
    if (of_graph) {
      exact_.emplace(dataset, config_, options.real, budget,
                     batches.memory.kept_bytes + kAllocatorKeeps);
    }
    return batches;
  });
  if (exact_) check_scratch(exact_->plan(), computed_bytes(plan.counts, plan.training), options_);
  source_ = std::make_unique<SampledBatches>(
      SampledBatches::On{backend, io, files, dataset, options_.on_wait}, programs_, std::move(plan),
      fanouts.exact ? &exact_->plan() : nullptr);
}

BatchTrainer::BatchTrainer(Backend& backend, BlockIo& io, const BatchFile& file,
                           const RunConfig& config, const BatchTrainerOptions& options)
    : BatchTrainer(backend, io, (check_trainable(file, config), trained_data(file, config)), config,
                   options) {
  if (!programs_.precompute.empty()) {
    throw UsageError(
        fmt::format("{} reads sums over all edges of the graph, which batches don't have",
                    config_.model.model),
        file.path(), "train on the dataset itself, with --fanouts, or with --edge-weights ignore");
  }
  source_ = std::make_unique<StoredBatches>(
      io, file, config_, StoredBatches::Programs{programs_, training_, evaluation_},
      options_.budget);
}

BatchTrainer::BatchTrainer(Backend& backend, BlockIo& io, TrainedData data, const RunConfig& config,
                           const BatchTrainerOptions& options)
    : BatchTrainer(backend, io, data, config, options,
                   {config, facts_of(data.manifest), options.real}) {}

BatchTrainer::BatchTrainer(Backend& backend, BlockIo& io, TrainedData data, const RunConfig& config,
                           const BatchTrainerOptions& options, BatchPrograms programs)
    : EpochTrainer(backend, io, std::move(data), config, options.real,
                   programs.training.model().parameters),
      options_(options),
      programs_(std::move(programs)),
      training_(backend, programs_.training.program()),
      evaluation_(backend, programs_.evaluation.program()) {
  bind_parameters(programs_.training, training_);
  bind_parameters(programs_.evaluation, evaluation_);
  for (const ModelParameter& parameter : programs_.training.model().parameters) {
    if (programs_.training.gradient_parts(parameter).size() < 2) continue;
    gradients_[parameter.name] = backend_.allocate(
        static_cast<std::size_t>(parameter.rows * parameter.cols) * dtype_bytes(real()));
  }
}

void BatchTrainer::bind_parameters(const ModelProgram& program, BatchExecutor& executor) {
  for (const ModelParameter& parameter : program.model().parameters) {
    const ValueId value = program.value(parameter.tensor);
    if (value >= 0) executor.bind_parameter(value, parameters_.data(parameter.name));
  }
}

std::optional<EpochRecord> BatchTrainer::run_epoch(const std::atomic<bool>* stop) {
  EpochRecord record;
  record.epoch = state_.epoch + 1;
  record.lr = learning_rate(config_, record.epoch);
  work_.clear();
  const auto begin = std::chrono::steady_clock::now();
  if (!train(record, stop) || (evaluates(config_, record.epoch) && !judge(record, stop))) {
    return std::nullopt;
  }
  state_.batches = 0;
  state_.batch_losses.clear();
  double computing = 0;
  for (const Work& work : work_) {
    record.counters.bytes_read += work.loaded.bytes.read;
    record.counters.bytes_written += work.loaded.bytes.written;
    record.counters.read_wait_seconds += work.loaded.seconds.waiting;
    computing += work.computing;
  }
  computing += record.counters.compute_seconds / static_cast<double>(workers_of(1));
  record.compute_busy = computing / seconds_since(begin);
  record.peak_device_bytes = peak_device_bytes();
  state_.epoch = record.epoch;
  if (!record.scores.empty()) keep_if_best(record);
  return record;
}

bool BatchTrainer::train(EpochRecord& record, const std::atomic<bool>* stop) {
  const auto begin = std::chrono::steady_clock::now();
  evaluation_.release();
  if (!source_->begin_training(record.epoch, state_.batches, stop)) return false;
  parameters_.restore(state_.parameters, "memory");  // what an error left half done is undone
  LossSums sums;
  if (state_.batches > 0) sums.restore(state_.batch_losses);
  double computing = 0;
  const std::int64_t batches = source_->batches();
  while (source_->next(stop)) {
    const std::int64_t done = source_->done(), step = (record.epoch - 1) * batches + done;
    const StepCounts counts = count_labels(config_, source_->batch(), parameters_);
    if (has_loss(config_, counts)) {
      computing +=
          run_batch(programs_.training, training_, counts, static_cast<std::uint64_t>(step), sums);
      check_finite(sums.of(Split::kTrain).loss, "loss", record.epoch);
      update_parameters(record.epoch, step);
    }
    if (done % config_.checkpoint_batches == 0 && done < batches) {
      keep_state(done, sums);
      if (save_) save_();
    }
    if (options_.on_batch) options_.on_batch(record.epoch, done, batches);
  }
  keep_state(source_->done(), sums);
  if (stop != nullptr && *stop) return false;
  record.loss = sums.of(Split::kTrain).loss;
  work_.push_back({"training", source_->take_work(), computing});
  record.train_seconds = seconds_since(begin);
  return true;
}

void BatchTrainer::keep_state(std::int64_t batches, const LossSums& sums) {
  state_.parameters = parameters_.capture();
  state_.batches = batches;
  state_.batch_losses = sums.of_training();
}

void BatchTrainer::release() {
  source_->release();
  training_.release();
  evaluation_.release();
}

bool BatchTrainer::judge(EpochRecord& record, const std::atomic<bool>* stop) {
  return config_.sampling.eval_fanouts.exact ? evaluate_exactly(record, stop)
                                             : evaluate(record, stop);
}

bool BatchTrainer::evaluate_exactly(EpochRecord& record, const std::atomic<bool>* stop) {
  const auto begin = std::chrono::steady_clock::now();
  release();
  auto result = exact_->run(backend_, io_, options_.scratch, state_.parameters, stop);
  if (!result) return false;
  // The step may have been the one that broke the model: it must not become the best one.
  check_finite(result->train_loss, "loss after the step", record.epoch);
  record.valid_loss = result->valid_loss;
  record.scores = std::move(result->scores);
  record.counters += result->counters;
  record.eval_seconds = seconds_since(begin);
  return true;
}

std::optional<std::vector<Scores>> BatchTrainer::final_scores(const std::atomic<bool>* stop) {
  if (!scores_anew() || state_.best.epoch == 0) return state_.best.scores;
  spdlog::info("evaluating the best model, of epoch {}, on the whole graph", state_.best.epoch);
  release();
  auto result = exact_->run(backend_, io_, options_.scratch, state_.best.parameters, stop);
  if (!result) return std::nullopt;
  return std::move(result->scores);
}

bool BatchTrainer::evaluate(EpochRecord& record, const std::atomic<bool>* stop) {
  const auto begin = std::chrono::steady_clock::now();
  const Task task = config_.model.task;
  const bool keeps_logits = need_logits(config_.metrics, task);
  const ModelProgram& program = programs_.evaluation;
  training_.release();
  if (!source_->begin_evaluation(record.epoch, stop)) return false;
  LossSums sums;
  double computing = 0;
  JudgedRows judged;
  while (source_->next(stop)) {
    computing += run_batch(program, evaluation_, {}, 0, sums);
    if (keeps_logits) {
      judged.add(evaluation_.output(program.value(program.evaluated().logits)), source_->batch());
    }
  }
  if (stop != nullptr && *stop) return false;
  const SplitLoss valid = sums.of(Split::kValid), test = sums.of(Split::kTest);
  record.valid_loss = valid.loss;
  // The step may have been the one that broke the model: it must not become the best one.
  if (source_->judges_valid()) {
    check_finite(valid.loss, "validation loss after the step", record.epoch);
  }
  std::optional<std::vector<Scores>> scores(config_.metrics.size());
  if (keeps_logits) scores = judged.scores(config_.metrics, task, stop);
  if (!scores) return false;
  for (std::size_t i = 0; i < config_.metrics.size(); ++i) {
    if (needs_logits(config_.metrics[i], task)) continue;
    (*scores)[i].valid = valid.accuracy;
    (*scores)[i].test = test.accuracy;
  }
  record.scores = std::move(*scores);
  work_.push_back({"evaluation", source_->take_work(), computing});
  record.eval_seconds = seconds_since(begin);
  return true;
}

double BatchTrainer::run_batch(const ModelProgram& program, BatchExecutor& executor,
                               const StepCounts& counts, std::uint64_t step, LossSums& sums) {
  const LoadedBatch& batch = source_->batch();
  const auto begin = std::chrono::steady_clock::now();
  executor.run(batch.graph(), batch.inputs(), {static_cast<std::uint64_t>(config_.seed), step},
               counts);
  const double seconds = seconds_since(begin);
  const TensorId loss = program.evaluated().loss;
  const TensorShape& shape = program.model().graph.shape(loss);
  const auto* const found =
      reinterpret_cast<const double*>(executor.reduction(program.value(loss)));
  sums.add({found, static_cast<std::size_t>(shape.rows * shape.cols)});
  return seconds;
}

void BatchTrainer::update_parameters(std::int64_t epoch, std::int64_t step) {
  const OptimizerOptions options = optimizer(epoch);
  const Model& model = programs_.training.model();
  for (const ModelParameter& parameter : model.parameters) {
    if (parameter.trainable) {
      parameters_.optimize(parameter.name, gradient(parameter), step, options);
    }
  }
  for (const BatchStatistics& statistics : model.batch_statistics) {
    const auto* const sums = reinterpret_cast<const double*>(
        training_.reduction(programs_.training.value(statistics.sums)));
    const Operation& sum =
        model.graph
            .operations()[static_cast<std::size_t>(model.graph.tensor(statistics.sums).producer)];
    const int level = rows_level(model.graph, sum);
    parameters_.update_statistics(statistics, sums,
                                  source_->batch().level_rows()[static_cast<std::size_t>(level)]);
  }
}

const void* BatchTrainer::gradient(const ModelParameter& parameter) {
  const std::vector<ValueId> parts = programs_.training.gradient_parts(parameter);
  if (parts.size() == 1) return training_.reduction(parts.front());
  DeviceBuffer& sum = *gradients_.at(parameter.name);
  backend_.queue(QueueKind::kCompute).copy(sum.data(), training_.reduction(parts[0]), sum.bytes());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    backend_.accumulate(real(), parameter.rows * parameter.cols, sum.data(),
                        training_.reduction(parts[i]));
  }
  return sum.data();
}

nlohmann::ordered_json BatchTrainer::plan_json() const { return source_->plan_json(); }

nlohmann::ordered_json BatchTrainer::passes_json(const EpochRecord& record) const {
  nlohmann::ordered_json passes = nlohmann::ordered_json::array();
  for (const Work& work : work_) {
    const auto add = [&](const char* name, double seconds) {
      passes.push_back({{"name", fmt::format("{} {}", work.of, name)}, {"seconds", seconds}});
    };
    add("sampling", work.loaded.seconds.sampling);
    add("packing", work.loaded.seconds.packing);
    add("waiting", work.loaded.seconds.waiting);
    add("assembling", work.loaded.seconds.assembling);
    add("computing", work.computing);
    passes.back()["bytes_read"] = work.loaded.bytes.read;
    passes.back()["bytes_written"] = work.loaded.bytes.written;
    for (const SuperbatchFigures& of : work.loaded.superbatches) {
      passes.back()["superbatches"].push_back(figures_to_json(of));
    }
  }
  if (config_.sampling.eval_fanouts.exact && !record.scores.empty()) {
    passes.push_back({{"name", "exact evaluation"}, {"seconds", record.eval_seconds}});
  }
  return passes;
}

}  // namespace ooc
