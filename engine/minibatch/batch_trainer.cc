#include "engine/minibatch/batch_trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/machine/devices.h"
#include "engine/machine/elapsed.h"
#include "engine/metrics/metrics.h"
#include "engine/minibatch/batch_counts.h"
#include "engine/minibatch/judged_rows.h"
#include "engine/minibatch/seeds.h"
#include "engine/train/program_run.h"
#include "engine/train/training_plan.h"
#include "kernels/spec/random.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

// What sampling is keyed by, apart from each other and from the streams of masks.
enum class Stream : std::uint64_t { kShuffle = 0x5eed, kTraining, kEvaluation };

std::uint64_t key_of(Stream stream, std::int64_t seed, std::int64_t epoch) {
  const auto stream_key = mix64(static_cast<std::uint64_t>(stream));
  return mix64(epoch_key(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(epoch)) ^
               stream_key);
}

BatchLoaderOptions loader_options(const ModelProgram& program, std::vector<HopSampling> hops,
                                  const RunConfig& config, const BatchTrainerOptions& options) {
  BatchLoaderOptions loading;
  loading.hops = std::move(hops);
  loading.batch_size = config.sampling.batch_size;
  const SamplingConfig& sampling = config.sampling;
  if (sampling.sampler == Sampler::kLabor) loading.batch_dependency = sampling.batch_dependency;
  loading.scratch = options.scratch;
  loading.workers = workers_of(1);
  describe_inputs(program, loading);
  return loading;
}

}  // namespace

// By split; as a loss' reduction has them.
struct BatchTrainer::Sums {
  std::array<std::vector<double>, 3> rows;

  void add(std::span<const double> sums) {
    const std::size_t cols = sums.size() / rows.size();
    for (std::size_t split = 0; split < rows.size(); ++split) {
      rows[split].resize(cols);
      for (std::size_t c = 0; c < cols; ++c) rows[split][c] += sums[split * cols + c];
    }
  }
  SplitLoss of(Split split) const {
    const std::vector<double>& row = rows[static_cast<std::size_t>(split) - 1];
    if (row.empty()) return {std::numeric_limits<double>::quiet_NaN()};
    return {row[0] / row.back(),
            row.size() > 2 ? row[1] / row[2] : std::numeric_limits<double>::quiet_NaN()};
  }
};

BatchTrainer::BatchTrainer(Backend& backend, BlockIo& io, FileSystem& files, const Dataset& dataset,
                           const RunConfig& config, const BatchTrainerOptions& options)
    : BatchTrainer(backend, io, files, dataset, config, options, [&] {
        check_trainable(dataset, config);
        return std::make_unique<BatchPrograms>(config, facts_of(dataset), options.real);
      }()) {}

BatchTrainer::BatchTrainer(Backend& backend, BlockIo& io, FileSystem& files, const Dataset& dataset,
                           const RunConfig& config, const BatchTrainerOptions& options,
                           std::unique_ptr<BatchPrograms> programs)
    : EpochTrainer(backend, io, dataset, config, options.real,
                   programs->training.model().parameters),
      files_(files),
      options_(options),
      programs_(std::move(programs)),
      inputs_(io, dataset),
      training_(backend, programs_->training.program()),
      evaluation_(backend, programs_->evaluation.program()) {
  const auto training =
      loader_options(programs_->training, training_hops(config.sampling), config, options_);
  const auto evaluation =
      loader_options(programs_->evaluation, evaluation_hops(config.sampling), config, options_);
  budget_ = share_memory(dataset, *programs_, {training, training_}, {evaluation, evaluation_},
                         inputs_, options_.budget);
  bind_parameters(programs_->training, training_);
  bind_parameters(programs_->evaluation, evaluation_);
  for (const ModelParameter& parameter : programs_->training.model().parameters) {
    if (programs_->training.gradient_parts(parameter).size() < 2) continue;
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

std::int64_t BatchTrainer::batches() const {
  return ceil_div(dataset_.manifest().split_counts[0], config_.sampling.batch_size);
}

bool BatchTrainer::prepare(const std::atomic<bool>* stop) {
  if (training_batches_) return true;
  if (!compute_once(stop)) return false;
  vertices_ = std::make_shared<const SampledVertices>(dataset_);
  train_ = vertices_of(dataset_, Split::kTrain, vertices_->names);
  judged_ = vertices_of(dataset_, Split::kValid, vertices_->names);
  const std::vector<std::uint32_t> test = vertices_of(dataset_, Split::kTest, vertices_->names);
  judged_.insert(judged_.end(), test.begin(), test.end());
  const auto open = [&](std::optional<BatchLoader>& loader, const ModelProgram& program,
                        std::vector<HopSampling> hops) {
    BatchLoaderOptions options = loader_options(program, std::move(hops), config_, options_);
    options.memory = budget_.loading;
    options.name = program.program().name;
    options.vertices = vertices_;
    loader.emplace(io_, files_, dataset_, inputs_, std::move(options));
  };
  open(training_batches_, programs_->training, training_hops(config_.sampling));
  open(evaluation_batches_, programs_->evaluation, evaluation_hops(config_.sampling));
  return true;
}

// Sums over all edges of what they carry, of which a batch has a few.
bool BatchTrainer::compute_once(const std::atomic<bool>* stop) {
  const Precompute& precompute = programs_->precompute;
  if (precompute.empty()) return true;
  RunBudget budget = options_.budget;
  budget.plan.store_outputs = true;
  budget.plan.workers = workers_of(1);
  Reserved reserved;
  reserved.host_bytes = budget.resident_bytes;
  const Plan plan = plan_in_budget(precompute.programs(), counts_of(dataset_), budget, reserved);
  Executor executor({backend_, io_, dataset_, options_.scratch, budget.plan.workers},
                    precompute.programs(), plan, inputs_.stores());
  for (int section = 0; section < static_cast<int>(precompute.programs().size()); ++section) {
    if (!executor.run(section, {}, stop)) return false;
  }
  if (const auto zeros = precompute.zero_factors()) {
    warn_of_zero_factors(read_reduction(backend_, executor, zeros->first, zeros->second, 1)[0]);
  }
  for (auto& [name, store] : precompute.release(executor)) inputs_.add(name, std::move(store));
  return true;
}

std::optional<EpochRecord> BatchTrainer::run_epoch(const std::atomic<bool>* stop) {
  if (!prepare(stop)) return std::nullopt;
  EpochRecord record;
  record.epoch = state_.epoch + 1;
  record.lr = learning_rate(config_, record.epoch);
  work_.clear();
  const auto begin = std::chrono::steady_clock::now();
  if (!train(record, stop) || (evaluates(record.epoch) && !evaluate(record, stop))) {
    parameters_.restore(state_.parameters, "memory");  // the partial epoch is dropped
    return std::nullopt;
  }
  state_.parameters = parameters_.capture();
  double computing = 0;
  for (const Work& work : work_) {
    record.counters.bytes_read += work.bytes.read;
    record.counters.bytes_written += work.bytes.written;
    record.counters.read_wait_seconds += work.loading.waiting;
    computing += work.computing;
  }
  record.compute_busy = computing / seconds_since(begin);
  record.peak_device_bytes = peak_device_bytes();
  state_.epoch = record.epoch;
  if (!record.scores.empty()) keep_if_best(record);
  return record;
}

bool BatchTrainer::evaluates(std::int64_t epoch) const {
  return epoch % config_.eval_every == 0 || epoch == config_.epochs;
}

// They are announced before they are begun with.
const SeedBatches& BatchTrainer::training_seeds(std::int64_t epoch) {
  if (epoch == seeds_epoch_) return seeds_;
  std::vector<std::uint32_t> seeds = train_;
  shuffle_seeds(seeds, key_of(Stream::kShuffle, config_.seed, epoch), vertices_->names);
  seeds_ = {std::move(seeds), config_.sampling.batch_size,
            key_of(Stream::kTraining, config_.seed, epoch)};
  seeds_epoch_ = epoch;
  return seeds_;
}

SeedBatches BatchTrainer::evaluation_seeds(std::int64_t epoch) const {
  return {judged_, config_.sampling.batch_size, key_of(Stream::kEvaluation, config_.seed, epoch)};
}

bool BatchTrainer::train(EpochRecord& record, const std::atomic<bool>* stop) {
  const auto begin = std::chrono::steady_clock::now();
  BatchLoader& loader = *training_batches_;
  loader.begin(training_seeds(record.epoch));
  const auto announce = [&] {
    if (evaluates(record.epoch)) {
      evaluation_batches_->announce(evaluation_seeds(record.epoch));
    } else {
      loader.announce(training_seeds(record.epoch + 1));
    }
  };
  Sums sums;
  double computing = 0;
  bool is_announced = false;
  while (loader.next(stop)) {
    if (loader.has_all() && !std::exchange(is_announced, true)) announce();
    const std::int64_t step = (record.epoch - 1) * loader.batches() + loader.index() + 1;
    const StepCounts counts = count_labels(config_, loader.batch(), parameters_);
    if (has_loss(config_, counts)) {
      computing += run_batch(programs_->training, training_, loader.batch(), counts,
                             static_cast<std::uint64_t>(step), sums);
      check_finite(sums.of(Split::kTrain).loss, "loss", record.epoch);
      update_parameters(record.epoch, step);
    }
    if (options_.on_batch) options_.on_batch(loader.index() + 1, loader.batches());
  }
  if (stop != nullptr && *stop) return false;
  record.loss = sums.of(Split::kTrain).loss;
  work_.push_back({"training", loader.take_seconds(), loader.take_bytes(), computing});
  record.train_seconds = seconds_since(begin);
  return true;
}

bool BatchTrainer::evaluate(EpochRecord& record, const std::atomic<bool>* stop) {
  const auto begin = std::chrono::steady_clock::now();
  const Task task = config_.model.task;
  const bool keeps_logits = need_logits(config_.metrics, task);
  const ModelProgram& program = programs_->evaluation;
  BatchLoader& loader = *evaluation_batches_;
  loader.begin(evaluation_seeds(record.epoch));
  const auto announce = [&] {
    if (record.epoch < config_.epochs) {
      training_batches_->announce(training_seeds(record.epoch + 1));
    }
  };
  Sums sums;
  double computing = 0;
  JudgedRows judged;
  bool is_announced = false;
  while (loader.next(stop)) {
    if (loader.has_all() && !std::exchange(is_announced, true)) announce();
    computing += run_batch(program, evaluation_, loader.batch(), {}, 0, sums);
    if (keeps_logits) {
      judged.add(evaluation_.output(program.value(program.evaluated().logits)), loader.batch());
    }
  }
  if (stop != nullptr && *stop) return false;
  const SplitLoss valid = sums.of(Split::kValid), test = sums.of(Split::kTest);
  record.valid_loss = valid.loss;
  // The step may have been the one that broke the model: it must not become the best one.
  if (dataset_.manifest().split_counts[1] > 0) {
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
  work_.push_back({"evaluation", loader.take_seconds(), loader.take_bytes(), computing});
  record.eval_seconds = seconds_since(begin);
  return true;
}

double BatchTrainer::run_batch(const ModelProgram& program, BatchExecutor& executor,
                               const LoadedBatch& batch, const StepCounts& counts,
                               std::uint64_t step, Sums& sums) {
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
  const Model& model = programs_->training.model();
  for (const ModelParameter& parameter : model.parameters) {
    if (parameter.trainable) {
      parameters_.optimize(parameter.name, gradient(parameter), step, options);
    }
  }
  for (const BatchStatistics& statistics : model.batch_statistics) {
    const auto* const sums = reinterpret_cast<const double*>(
        training_.reduction(programs_->training.value(statistics.sums)));
    const Operation& sum =
        model.graph
            .operations()[static_cast<std::size_t>(model.graph.tensor(statistics.sums).producer)];
    const int level = rows_level(model.graph, sum);
    parameters_.update_statistics(
        statistics, sums, training_batches_->batch().level_rows()[static_cast<std::size_t>(level)]);
  }
}

const void* BatchTrainer::gradient(const ModelParameter& parameter) {
  const std::vector<ValueId> parts = programs_->training.gradient_parts(parameter);
  if (parts.size() == 1) return training_.reduction(parts.front());
  DeviceBuffer& sum = *gradients_.at(parameter.name);
  backend_.queue(QueueKind::kCompute).copy(sum.data(), training_.reduction(parts[0]), sum.bytes());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    backend_.accumulate(real(), parameter.rows * parameter.cols, sum.data(),
                        training_.reduction(parts[i]));
  }
  return sum.data();
}

nlohmann::ordered_json BatchTrainer::plan_json() const {
  nlohmann::ordered_json plan;
  plan["fanouts"] = config_.sampling.fanouts.hops;
  plan["batch_size"] = config_.sampling.batch_size;
  plan["batches"] = batches();
  plan["host_memory"] = options_.budget.host_bytes;
  plan["fixed_bytes"] = budget_.fixed_bytes;
  const BatchMemory& memory = budget_.loading;
  plan["memory"] = {{"hot_rows", memory.hot_rows},     {"cold_rows", memory.cold_rows},
                    {"lists", memory.lists},           {"ranges", memory.ranges},
                    {"edge_slots", memory.edge_slots}, {"writes", memory.writes}};
  plan["blas_core"] = blas_core().name;
  return plan;
}

std::string BatchTrainer::plan_text() const {
  const auto size = [](std::int64_t bytes) { return format_byte_size(bytes); };
  const SamplingConfig& sampling = config_.sampling;
  BatchLoaderOptions options{};
  options.hops = training_hops(sampling);
  options.batch_size = sampling.batch_size;
  const std::vector<std::int64_t> rows =
      most_level_rows(options, dataset_.vertices(), dataset_.edges());
  std::string text = fmt::format("an epoch   {} batches of {} seeds, fan-outs {}\n", batches(),
                                 sampling.batch_size, to_text(sampling.fanouts));
  text +=
      fmt::format("a batch    up to {} vertices, by level {}\n", rows.back(), fmt::join(rows, " "));
  if (options_.budget.host_bytes == 0) return text;
  const BatchMemory& memory = budget_.loading;
  text += fmt::format(
      "memory     {} in all: {} for programs, parameters and the largest batch, {} for rows that "
      "many batches ask for, {} for lists of vertices and edges, {} for what is on its way\n",
      size(options_.budget.host_bytes), size(budget_.fixed_bytes),
      size(2 * (memory.hot_rows + memory.cold_rows)), size(4 * memory.lists),
      size(2 * (memory.ranges + memory.edge_slots + memory.writes)));
  return text;
}

nlohmann::ordered_json BatchTrainer::passes_json(const EpochRecord&) const {
  nlohmann::ordered_json passes = nlohmann::ordered_json::array();
  for (const Work& work : work_) {
    const auto add = [&](const char* name, double seconds) {
      passes.push_back({{"name", fmt::format("{} {}", work.of, name)}, {"seconds", seconds}});
    };
    add("sampling", work.loading.sampling);
    add("packing", work.loading.packing);
    add("waiting", work.loading.waiting);
    add("assembling", work.loading.assembling);
    add("computing", work.computing);
    passes.back()["bytes_read"] = work.bytes.read;
    passes.back()["bytes_written"] = work.bytes.written;
  }
  return passes;
}

}  // namespace ooc
