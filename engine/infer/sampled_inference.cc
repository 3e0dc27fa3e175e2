#include "engine/infer/sampled_inference.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/batches/batch_forecast.h"
#include "engine/batches/batch_memory.h"
#include "engine/batches/batch_plan.h"
#include "engine/batches/computed_inputs.h"
#include "engine/machine/devices.h"
#include "engine/model/precompute.h"
#include "engine/train/training_plan.h"
#include "kernels/spec/random.h"

namespace ooc {
namespace {

// Of what is sampled here, apart from what trainings and evaluations do.
constexpr std::uint64_t kStream = 0x1fe2;

std::vector<std::uint32_t> all_vertices(const Dataset& dataset) {
  std::vector<std::uint32_t> vertices(static_cast<std::size_t>(dataset.vertices()));
  std::iota(vertices.begin(), vertices.end(), 0u);
  return vertices;
}

// Files of two superbatches are there at once, one after the other, beside what is computed once
// and what is collected.
ScratchNeed needed_scratch(const SampledCounts& counts, BatchLoaderOptions loading,
                           const BatchMemory& memory, std::int64_t collected_bytes) {
  loading.memory = memory;
  const HotChoice hot = forecast_hot(counts, loading, &DegreeClass::vertices);
  const BatchForecast all = forecast_batches(counts, loading, &DegreeClass::vertices, hot, true);
  const auto at_once = static_cast<double>(std::min<std::int64_t>(all.superbatches, 2));
  return {computed_bytes(counts, loading) + collected_bytes +
              static_cast<std::int64_t>(at_once * all.scratch),
          ceil_div(all.batches, all.superbatches)};
}

}  // namespace

SampledInference::SampledInference(Backend& backend, BlockIo& io, FileSystem& files,
                                   const Dataset& dataset, const ModelProgram& program,
                                   std::span<const TensorId> outputs, ParameterStore& parameters,
                                   const SampledInferenceOptions& options)
    : backend_(backend),
      io_(io),
      files_(files),
      dataset_(dataset),
      program_(program),
      outputs_(outputs.begin(), outputs.end()),
      options_(options),
      inputs_(io, dataset),
      executor_(backend, program.program()),
      loading_(loader_options(program, training_hops(options.sampling), options.sampling,
                              options.scratch)) {
  loading_.on_wait = options_.on_wait;
  loading_.are_alike = false;  // vertices in the graph's order
  SampledCounts counts = sampled_counts(dataset);
  counts.degrees = degree_classes(dataset);
  counts.train = dataset.vertices();  // seeds
  counts.judged = 0;
  std::int64_t own = options_.own_bytes, collected = 0;
  for (const TensorId output : outputs_) {
    const std::int64_t cols = program.model().graph.shape(output).cols;
    own += CollectedRows::memory_bytes(program.real(), dataset.vertices(), cols);
    collected += CollectedRows::file_bytes(program.real(), dataset.vertices(), cols);
  }
  BatchBudget memory = share_memory(
      counts, {{{loading_, executor_, {}}}, parameter_bytes(program, Mode::kEvaluate), own},
      options_.budget);
  fit_scratch(
      options_.budget.scratch_bytes, options_.scratch,
      [&](const BatchMemory& given) { return needed_scratch(counts, loading_, given, collected); },
      memory.loading);
  loading_.memory = memory.loading;
  loading_.limits = std::move(memory.limits.front());
  for (const ModelParameter& parameter : program.model().parameters) {
    const ValueId value = program.value(parameter.tensor);
    if (value >= 0) executor_.bind_parameter(value, parameters.data(parameter.name));
  }
}

bool SampledInference::run(const std::atomic<bool>* stop) {
  const Precompute precompute(program_.precomputed());
  const ComputeOnce with{backend_, io_, dataset_, options_.budget, options_.scratch};
  if (!compute_inputs(precompute, with, inputs_, stop)) return false;
  for (const TensorId output : outputs_) {
    const std::int64_t cols = program_.model().graph.shape(output).cols;
    collected_.push_back(std::make_unique<CollectedRows>(io_, options_.scratch, program_.real(),
                                                         dataset_.vertices(), cols));
  }
  BatchLoader loader(io_, files_, dataset_, inputs_, loading_);
  loader.begin({all_vertices(dataset_), options_.sampling.batch_size,
                mix64(epoch_key(options_.seed, 0) ^ mix64(kStream))});
  while (loader.next(stop)) {
    run_batch(loader.batch());
    if (options_.on_batch) options_.on_batch(loader.done(), loader.batches());
  }
  executor_.release();
  return stop == nullptr || !*stop;
}

void SampledInference::run_batch(const LoadedBatch& batch) {
  executor_.run(batch.graph(), batch.inputs(), {});
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    collected_[i]->append(executor_.output(program_.value(outputs_[i])), batch.level_rows()[0]);
  }
  const TensorId loss = program_.evaluated().loss;
  if (loss < 0 || program_.value(loss) < 0) return;
  const TensorShape& shape = program_.model().graph.shape(loss);
  const auto* const sums =
      reinterpret_cast<const double*>(executor_.reduction(program_.value(loss)));
  sums_.add({sums, static_cast<std::size_t>(shape.rows * shape.cols)});
}

}  // namespace ooc
