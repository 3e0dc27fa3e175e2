#include "engine/infer/inference.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/batches/batch_programs.h"
#include "engine/graph/edge_operators.h"
#include "engine/infer/model_fit.h"
#include "engine/infer/sampled_inference.h"
#include "engine/machine/dataset_io.h"
#include "engine/machine/devices.h"
#include "engine/model/build.h"
#include "engine/train/program_run.h"
#include "storage/base/errors.h"
#include "storage/dataset/original_names.h"
#include "storage/dataset/result_file.h"
#include "storage/stores/dataset_tensor.h"

namespace ooc {
namespace {

constexpr DType kReal = DType::kF32;
[[noreturn]] void interrupted() {
  throw Interrupted("interrupted, nothing was written", "", "run it again");
}

// What is computed once a run is no gain in a single one, and would be kept in memory.
Rewrites rewrites_for_one_run(const RunConfig& config) {
  Rewrites rewrites = parse_rewrites(config.rewrites);
  rewrites.hoisting = false;
  return rewrites;
}

struct InferencePlan {
  Plan plan;
  std::int64_t result_bytes = 0;  // of memory for results
};

// The results in `outputs`, written one after another, take a quarter of the budget at most (the
// more, the less often rows in another order are read), and little where a plan fits only so.
// `own_bytes`: taken besides.
InferencePlan plan_inference(const ModelProgram& program, std::span<const TensorId> outputs,
                             const GraphCounts& counts, std::int64_t own_bytes,
                             const RunBudget& budget) {
  constexpr std::int64_t kLeast = 4 << 20, kUnlimited = 1 << 30;
  const std::int64_t vertices = counts.edges.vertices;
  std::int64_t output_bytes = 0, reserve = 0;
  for (const TensorId output : outputs) {
    output_bytes = std::max(output_bytes, vertices * program.model().graph.shape(output).cols *
                                              std::int64_t{sizeof(float)});
    reserve = std::max(reserve, output_reserve(program, output, counts));
  }
  const TensorLayout ids{vertices, 1, counts.edges.block_rows};
  Reserved reserved{budget.resident_bytes + own_bytes + kLeast + reserve +
                    2 * stored_reserve(ids, DType::kI64) +  // ours, and the input's
                    process_reserve(budget.plan.workers * budget.plan.devices,
                                    parameter_bytes(program, Mode::kEvaluate), counts)};
  if (budget.plan.device) {
    reserved.device_bytes =
        budget.device_resident_bytes + device_reserve(program, Mode::kEvaluate, counts);
  }
  const std::int64_t wanted =
      std::min(output_bytes, budget.host_bytes > 0 ? budget.host_bytes / 4 : kUnlimited);
  if (wanted > kLeast) {
    Reserved with_results = reserved;
    with_results.host_bytes += wanted - kLeast;
    auto plan = try_plan_in_budget({&program.program()}, counts, budget, with_results);
    if (plan) return {std::move(*plan), wanted};
  }
  return {plan_in_budget({&program.program()}, counts, budget, reserved), kLeast};
}

std::string path_of_layer(const std::string& path, std::int64_t layer) {
  const std::size_t dot = path.rfind('.');
  return fmt::format("{}.layer{}{}", path.substr(0, dot), layer, path.substr(dot));
}

// Leaves in model.layers those that are written. Returns the files.
std::vector<std::string> choose_layers(Model& model, const InferenceOptions& options) {
  const std::int64_t count = std::ssize(model.layers);
  if (options.output != Output::kEmbeddings) {
    model.layers.clear();
  } else if (!options.layer) {
    if (model.embedding < 0) {
      throw UsageError("a model of one layer has no hidden layer", "--what embeddings",
                       "ask for its logits, classes or values, or for --layer 1");
    }
    model.layers = {model.embedding};
  } else if (*options.layer == kAllLayers) {
    std::vector<std::string> paths;
    for (std::int64_t i = 1; i <= count; ++i) paths.push_back(path_of_layer(options.path, i));
    return paths;
  } else if (*options.layer > count) {
    throw UsageError(fmt::format("--layer {}", *options.layer),
                     fmt::format("the layers of the model are {}", count),
                     count > 1 ? fmt::format("give 1 to {}, or all", count) : "give 1");
  } else {
    model.layers = {model.layers[static_cast<std::size_t>(*options.layer) - 1]};
  }
  return {options.path};
}

Wanted wanted_of(const std::vector<Metric>& metrics, Task task, Output output) {
  Wanted wanted = {};
  wanted.loss = !metrics.empty();
  wanted.layers = output == Output::kEmbeddings;
  wanted.logits = !wanted.layers || need_logits(metrics, task);
  wanted.zero_factors = true;
  return wanted;
}

// What of the dataset plays no part, or another one than may be thought.
void warn_of_weights(const Dataset& dataset, const ModelProgram& program, const ProgramRun& run) {
  const Model& model = program.model();
  if (dataset.manifest().edges.data.weights && !model.graph.has_input(kEdgeWeightsInput)) {
    spdlog::warn("the model was trained without weights of edges: those of {} are not used",
                 dataset.path());
  }
  if (model.zero_factors >= 0) {
    warn_of_zero_factors(run.read_reduction(0, model.zero_factors)[0]);
  }
}

}  // namespace

Output default_output(Task task) {
  return task == Task::kRegression ? Output::kValues : Output::kLogits;
}

namespace {

// What is computed, and of what.
struct Job {
  InferenceResult result;
  std::vector<Metric> metrics;
  Task task = Task::kSingle;
  Wanted wanted = {};
  std::optional<ModelProgram> program;
  std::vector<TensorId> outputs;
};

Job make_job(FileSystem& files, const Dataset& dataset, const Checkpoint& checkpoint,
             const InferenceOptions& options) {
  Model model = model_for(dataset, checkpoint);
  Job job;
  job.task = checkpoint.config.model.task;
  check_output(options.output, job.task);
  job.metrics = metrics_for(dataset, checkpoint, options);
  job.result.paths = choose_layers(model, options);
  for (const std::string& path : job.result.paths) {
    check_result_is_free(files, path, dataset.manifest().remapped, options.force);
  }
  job.wanted = wanted_of(job.metrics, job.task, options.output);
  if (options.sampling.fanouts.empty()) {
    job.program.emplace(std::move(model), "evaluation", job.wanted,
                        ProgramOptions{rewrites_for_one_run(checkpoint.config)});
  } else {
    job.wanted.zero_factors = false;  // counted where it is computed
    if (options.sampling.weighted && !dataset.manifest().edges.data.weights) {
      throw DataError("dataset without weights of edges, the model was trained with --weighted",
                      dataset.path(), "import it with the weights of its edges");
    }
    job.program.emplace(batch_program(std::move(model), checkpoint.config, job.wanted,
                                      {"evaluation", options.sampling.fanouts, "--fanouts"}));
  }
  if (job.wanted.loss) dataset.check_labels();
  const Model& of_program = job.program->model();
  job.outputs = job.wanted.layers ? of_program.layers : std::vector{of_program.logits};
  OOC_CHECK(job.outputs.size() == job.result.paths.size());
  return job;
}

// Where the rows of outputs are once they are computed.
struct Computed {
  std::function<BlockRows(TensorId)> rows;
  std::function<std::array<SplitLoss, 3>()> losses;
  std::int64_t result_bytes = 0;  // of memory for results
};

// Writes what was computed, and scores it.
class ResultWriter {
 public:
  ResultWriter(FileSystem& files, const Dataset& dataset, const Checkpoint& checkpoint,
               const InferenceOptions& options)
      : files_(files), dataset_(dataset), checkpoint_(checkpoint), options_(options) {
    if (dataset.manifest().remapped == IdKind::kStrings) names_.emplace(dataset);
  }

  // Of memory, besides what is computed.
  std::int64_t resident_bytes() const {
    constexpr std::int64_t kHeaps = 8 << 20;  // of HDF5 and of what is freed
    return names_ ? names_->resident_bytes() + kHeaps : 0;
  }

  InferenceResult write(BlockIo& io, Job& job, const Computed& computed,
                        const std::atomic<bool>* stop) {
    const GraphInputs inputs(io, dataset_);
    std::int64_t bytes_read = 0;
    std::optional<DatasetTensor> ids_store;
    std::optional<BlockRows> ids;
    if (dataset_.manifest().remapped == IdKind::kIntegers) {
      const VertexTensorFile& file = *dataset_.tensor("original_ids");
      ids.emplace(stored_rows(ids_store.emplace(io, file), bytes_read));
    }
    std::vector<std::unique_ptr<ResultFile>> written;
    for (std::size_t i = 0; i < job.outputs.size(); ++i) {
      ResultRows rows(options_.output, job.task,
                      job.program->model().graph.shape(job.outputs[i]).cols);
      written.push_back(make_result_file(files_, job.result.paths[i],
                                         rows.shape(dataset_, checkpoint_.class_names)));
      BlockRows source = computed.rows(job.outputs[i]);
      write_result(inputs, {source, ids ? &*ids : nullptr, names_ ? &*names_ : nullptr}, rows,
                   computed.result_bytes, *written.back(), stop);
    }
    for (const auto& file : written) file->finish();
    if (job.wanted.loss) {
      const TensorId logits = job.program->evaluated().logits;
      auto scores = scores_of({[&] { return computed.rows(logits); }, computed.losses}, inputs,
                              job.metrics, job.task, bytes_read, stop);
      if (!scores) {
        throw Interrupted("interrupted before the scores", options_.path, "it is complete");
      }
      job.result.scores = std::move(*scores);
    }
    return job.result;
  }

 private:
  FileSystem& files_;
  const Dataset& dataset_;
  const Checkpoint& checkpoint_;
  const InferenceOptions& options_;
  std::optional<OriginalNames> names_;
};

InferenceResult infer_sampled(FileSystem& files, Backend& backend, BlockIo& given_io,
                              const Dataset& dataset, const Checkpoint& checkpoint,
                              const InferenceOptions& options, const std::atomic<bool>* stop) {
  constexpr std::int64_t kMostResult = 1 << 30, kLeastResult = 4 << 20;
  std::unique_ptr<BlockIo> mapped;
  if (options.may_map && mapping_pays(dataset, options.budget)) {
    mapped = make_mapped_block_io(given_io);
  }
  BlockIo& io = mapped ? *mapped : given_io;
  Job job = make_job(files, dataset, checkpoint, options);
  ResultWriter writer(files, dataset, checkpoint, options);
  ParameterStore parameters(backend, kReal, job.program->model().parameters, Mode::kEvaluate);
  parameters.restore(checkpoint.state.parameters, "the checkpoint");
  std::vector<TensorId> collected = job.outputs;
  const TensorId logits = job.program->evaluated().logits;
  if (job.wanted.layers && job.wanted.logits) collected.push_back(logits);
  const std::int64_t metric_bytes =
      metric_reserve(*job.program, job.metrics, job.task, counts_of(dataset));
  SampledInference inference(backend, io, files, dataset, *job.program, collected, parameters,
                             {options.sampling, static_cast<std::uint64_t>(checkpoint.config.seed),
                              options.budget, writer.resident_bytes() + metric_bytes + kLeastResult,
                              options.scratch, options.on_batch, options.on_wait});
  if (!inference.run(stop)) interrupted();
  const auto rows = [&](TensorId tensor) {
    const auto found = std::find(collected.begin(), collected.end(), tensor);
    return inference.rows(static_cast<std::size_t>(found - collected.begin()));
  };
  const std::int64_t left = options.budget.host_bytes - options.budget.resident_bytes -
                            writer.resident_bytes() - metric_bytes;
  const std::int64_t half = std::max<std::int64_t>(left / 2, kLeastResult);
  return writer.write(io, job,
                      {rows, [&] { return inference.losses(); },
                       options.budget.host_bytes > 0 ? half : kMostResult},
                      stop);
}

}  // namespace

InferenceResult run_inference(FileSystem& files, Backend& backend, BlockIo& given_io,
                              const Dataset& dataset, const Checkpoint& checkpoint,
                              const InferenceOptions& options, const std::atomic<bool>* stop) {
  if (!options.sampling.fanouts.empty()) {
    return infer_sampled(files, backend, given_io, dataset, checkpoint, options, stop);
  }
  Job job = make_job(files, dataset, checkpoint, options);
  const ModelProgram& program = *job.program;
  ParameterStore parameters(backend, kReal, program.model().parameters, Mode::kEvaluate);
  parameters.restore(checkpoint.state.parameters, "the checkpoint");
  RunBudget budget = options.budget;
  budget.plan.workers = workers_of(budget.plan.devices);
  budget.plan.stop = stop;
  const GraphCounts counts = counts_of(dataset, budget.plan.devices);
  ResultWriter writer(files, dataset, checkpoint, options);
  const std::int64_t own_bytes =
      metric_reserve(program, job.metrics, job.task, counts) + writer.resident_bytes();
  const InferencePlan planned = plan_inference(program, job.outputs, counts, own_bytes, budget);
  std::unique_ptr<BlockIo> mapped;
  if (options.may_map && planned.plan.stored_bytes == 0 && mapping_pays(dataset, budget)) {
    mapped = make_mapped_block_io(given_io);
  }
  BlockIo& io = mapped ? *mapped : given_io;
  const GraphInputs inputs(io, dataset);
  ProgramRun run({backend, io, dataset, options.scratch, budget.plan.workers, options.others},
                 {&program}, planned.plan, inputs, parameters);
  if (!run.run(0, {}, stop)) interrupted();
  warn_of_weights(dataset, program, run);
  const TensorId loss = program.evaluated().loss;
  return writer.write(io, job,
                      {[&](TensorId tensor) { return run.rows(0, tensor); },
                       [&] { return run.losses(0, loss); }, planned.result_bytes},
                      stop);
}

}  // namespace ooc
