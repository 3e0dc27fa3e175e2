#include "engine/minibatch/stored_batches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/batches/judged_rows.h"
#include "engine/batches/seeds.h"
#include "engine/machine/devices.h"
#include "engine/machine/elapsed.h"
#include "engine/model/parts/class_weights.h"
#include "engine/train/config_words.h"
#include "engine/train/training_plan.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

std::vector<std::int64_t> batches_of(const BatchesManifest& manifest, std::size_t section) {
  std::vector<std::int64_t> batches(static_cast<std::size_t>(manifest.sections[section].batches));
  std::iota(batches.begin(), batches.end(), manifest.first_batch(section));
  return batches;
}

void require(bool is_met, const char* what, const BatchFile& file, const char* remedy) {
  if (!is_met) throw DataError(what, file.path(), remedy);
}

}  // namespace

SamplingConfig sampling_of(const BatchesManifest& manifest) {
  const SampledBy& by = manifest.sampled;
  SamplingConfig sampling;
  sampling.fanouts.hops = by.fanouts;
  sampling.batch_size = by.batch_size;
  sampling.replace = by.replace;
  for (const auto& [word, sampler] : kSamplers) {
    if (by.sampler == word) sampling.sampler = sampler;
  }
  sampling.batch_dependency = by.batch_dependency;
  sampling.weighted = by.weighted;
  return sampling;
}

void check_trainable(const BatchFile& file, const RunConfig& config) {
  const BatchesManifest& manifest = file.manifest();
  const Manifest& graph = manifest.dataset;
  require(graph.files.contains("features"), "batches without features, training needs them", file,
          "sample them of a dataset with features");
  require(graph.files.contains("labels"), "batches without labels, training needs them", file,
          "sample them of a dataset with labels");
  require(!manifest.sections_of(Split::kTrain).empty(), "batches without training seeds", file,
          "sample them with --seeds train,valid,test");
  check_config(config, graph.labels, graph.classes, file.path());
}

TrainedData trained_data(const BatchFile& file, const RunConfig& config) {
  const BatchesManifest& manifest = file.manifest();
  const ModelOptions& model = config.model;
  TrainedData data{manifest.dataset, file.path(), manifest.checksum, {}};
  if (model.class_weights.weigh()) {
    data.class_weights =
        class_weights_of(manifest.train_labels, model.class_weights, model.task, file.path());
  }
  return data;
}

StoredBatches::Kind::Kind(const ModelProgram& program, const BatchFile& file)
    : options([&] {
        BatchLoaderOptions of;
        of.hops = training_hops(sampling_of(file.manifest()));
        describe_inputs(program, of);
        return of;
      }()),
      stored(options, file.layout()),
      loaded(options, file.layout().data()) {}

StoredBatches::StoredBatches(BlockIo& io, const BatchFile& file, const RunConfig& config,
                             const Programs& programs, const RunBudget& budget)
    : file_(file),
      config_(config),
      budget_(budget),
      training_(programs.of.training, file),
      evaluation_(programs.of.evaluation, file) {
  const BatchesManifest& manifest = file.manifest();
  for (const Split split : {Split::kValid, Split::kTest}) {
    for (const std::size_t section : manifest.sections_of(split)) {
      const std::vector<std::int64_t> batches = batches_of(manifest, section);
      judged_.insert(judged_.end(), batches.begin(), batches.end());
    }
  }
  needed_bytes_ = needed_bytes(programs, budget);
  if (budget.host_bytes == 0 || budget.host_bytes >= needed_bytes_) {
    reader_.emplace(io, file);
    return;
  }
  BudgetError error(
      fmt::format("a memory budget of {} MiB is too small: the least that works is {} MiB, for "
                  "batches of up to {} vertices",
                  budget.host_bytes / kMiB, ceil_div(needed_bytes_, kMiB),
                  manifest.most_rows.back()),
      "--host-memory", "give more, or sample with a smaller --batch-size or smaller --fanouts");
  error.least_bytes = needed_bytes_;
  throw error;
}

std::int64_t StoredBatches::needed_bytes(const Programs& programs, const RunBudget& budget) const {
  constexpr std::int64_t kCopies = 8;  // in use, of the state, the best, checkpoints
  const BatchesManifest& manifest = file_.manifest();
  // Edges and their tiles, with what they carry.
  const auto edge_bytes = 56 + 3 * static_cast<std::int64_t>(manifest.dataset.edges.data.bytes());
  const std::int64_t workers = workers_of(1);
  GraphCounts counts;  // of a batch
  counts.edges = manifest.dataset.edges;
  counts.edges.vertices = manifest.most_rows.back();
  counts.edges.edges = manifest.most_edges;
  std::int64_t bytes =
      budget.resident_bytes + StoredBatchReader::buffer_bytes(file_) +
      process_reserve(workers, kCopies * parameter_bytes(programs.of.training, Mode::kTrain),
                      counts);
  for (const BatchExecutor* executor : {&programs.training, &programs.evaluation}) {
    bytes += executor->arena_bytes(manifest.most_rows) + workers * executor->scratch_bytes() +
             executor->reduction_bytes();
  }
  for (const Kind* kind : {&training_, &evaluation_}) {
    bytes += kind->stored.widened_bytes(manifest.most_rows) + edge_bytes * manifest.most_edges;
  }
  std::int64_t judged = 0;
  for (const BatchSection& section : manifest.sections) {
    const bool is_judged = section.split == Split::kValid || section.split == Split::kTest;
    if (is_judged) judged += section.seeds;
  }
  return bytes + JudgedRows::bytes(programs.of.evaluation, config_, manifest.dataset.labels,
                                   manifest.dataset.classes, judged);
}

std::int64_t StoredBatches::batches() const {
  const BatchesManifest& manifest = file_.manifest();
  return manifest.sections[manifest.sections_of(Split::kTrain).front()].batches;
}

bool StoredBatches::judges_valid() const {
  return !file_.manifest().sections_of(Split::kValid).empty();
}

std::vector<std::int64_t> StoredBatches::training_order(std::int64_t epoch) const {
  const BatchesManifest& manifest = file_.manifest();
  const std::vector<std::size_t> sections = manifest.sections_of(Split::kTrain);
  const std::int64_t sampled = std::ssize(sections);
  std::vector<std::int64_t> batches =
      batches_of(manifest, sections[static_cast<std::size_t>((epoch - 1) % sampled)]);
  if (epoch <= sampled) return batches;
  std::vector<std::uint32_t> order(batches.begin(), batches.end());
  shuffle_seeds(order, seed_key(SeedStream::kShuffle, config_.seed, epoch), {});
  return {order.begin(), order.end()};
}

bool StoredBatches::begin_training(std::int64_t epoch, std::int64_t first,
                                   const std::atomic<bool>* stop) {
  std::vector<std::int64_t> batches = training_order(epoch);
  batches.erase(batches.begin(), batches.begin() + first);
  current_ = &training_;
  left_out_ = first;
  reader_->begin(std::move(batches));
  return stop == nullptr || !*stop;
}

bool StoredBatches::begin_evaluation(std::int64_t, const std::atomic<bool>* stop) {
  current_ = &evaluation_;
  left_out_ = 0;
  reader_->begin(judged_);
  return stop == nullptr || !*stop;
}

bool StoredBatches::next(const std::atomic<bool>* stop) {
  if (stop != nullptr && *stop) return false;
  const auto begin = std::chrono::steady_clock::now();
  if (!reader_->next()) return false;
  seconds_.waiting += seconds_since(begin);
  const auto arrived = std::chrono::steady_clock::now();
  current_->loaded.set(current_->stored.open(reader_->batch()));
  seconds_.assembling += seconds_since(arrived);
  return true;
}

LoadedWork StoredBatches::take_work() {
  const std::int64_t read = reader_->bytes_read();
  return {std::exchange(seconds_, {}), {read - std::exchange(taken_bytes_, read), 0}, {}};
}

std::int64_t StoredBatches::bytes_of(const std::vector<std::int64_t>& batches) const {
  std::int64_t bytes = 0;
  for (const std::int64_t batch : batches) {
    bytes += static_cast<std::int64_t>(file_.file().entry(static_cast<std::uint64_t>(batch)).bytes);
  }
  return bytes;
}

EpochForecast StoredBatches::forecast() const {
  const std::int64_t bytes = bytes_of(training_order(1)) + bytes_of(judged_);
  const double seconds = static_cast<double>(bytes) / budget_.plan.rates.storage_read;
  return {bytes, seconds, seconds};
}

nlohmann::ordered_json StoredBatches::plan_json() const {
  const EpochForecast epoch = forecast();
  nlohmann::ordered_json plan;
  plan["fanouts"] = file_.manifest().sampled.fanouts;
  plan["batch_size"] = file_.manifest().sampled.batch_size;
  plan["batches"] = batches();
  plan["sampled_epochs"] = file_.manifest().sections_of(Split::kTrain).size();
  plan["host_memory"] = budget_.host_bytes;
  plan["needed_bytes"] = needed_bytes_;
  plan["forecast"] = {{"bytes_read_per_epoch", epoch.bytes},
                      {"bytes_written_per_epoch", 0},
                      {"seconds", epoch.seconds},
                      {"bound_seconds", epoch.bound_seconds}};
  plan["blas_core"] = blas_core().name;
  return plan;
}

std::string StoredBatches::plan_text() const {
  const BatchesManifest& manifest = file_.manifest();
  const EpochForecast epoch = forecast();
  return fmt::format(
      "an epoch   {} batches of {} seeds, fan-outs {}, sampled for {} epochs\n"
      "a batch    up to {} vertices, by level {}\n"
      "memory     {} are needed\n"
      "storage    reads {}, in {:.3g} s at its measured rate\n",
      batches(), manifest.sampled.batch_size, fmt::join(manifest.sampled.fanouts, ","),
      manifest.sections_of(Split::kTrain).size(), manifest.most_rows.back(),
      fmt::join(manifest.most_rows, " "), format_byte_size(needed_bytes_),
      format_byte_size(epoch.bytes), epoch.seconds);
}

}  // namespace ooc
