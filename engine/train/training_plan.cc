#include "engine/train/training_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/metrics/metrics.h"
#include "engine/model/build.h"
#include "engine/train/epoch_choice.h"
#include "kernels/dense/blas_core.h"
#include "sched/plan/io_chunks.h"
#include "sched/plan/report.h"
#include "sched/plan/search/planner.h"
#include "sched/run/self_loops.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"
#include "storage/stores/scratch_tensor.h"

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

Wanted wanted_of_evaluation(const RunConfig& config) {
  return {.logits = need_logits(config.metrics, config.model.task)};
}

// Labels and splits as a dataset keeps them.
struct LabelFiles {
  TensorLayout labels, splits;
  DType labels_dtype;

  LabelFiles(Task task, const EdgeLayout& edges, std::int64_t logits)
      : labels{edges.vertices, label_cols(labels_of(task), logits), edges.block_rows},
        splits{edges.vertices, 1, edges.block_rows},
        labels_dtype(label_dtype(labels_of(task))) {}
};

std::int64_t payload_bytes(const TensorLayout& layout, DType dtype) {
  std::int64_t stride = 0;
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    stride += layout.slice_stride(slice);
  }
  return layout.rows * stride * static_cast<std::int64_t>(dtype_bytes(dtype));
}

// Of the rows that a reader holds, and of the slice it reads them from.
std::int64_t reader_bytes(const TensorLayout& layout, DType dtype, std::int64_t io_chunk_blocks) {
  const std::int64_t rows = std::min(layout.rows, io_chunk_blocks * layout.block_rows);
  return 2 * payload_bytes({rows, layout.cols, rows}, dtype);
}

std::vector<Precomputed> all_precomputed(const std::vector<const ModelProgram*>& programs) {
  std::vector<Precomputed> all;
  for (const ModelProgram* program : programs) {
    all.insert(all.end(), program->precomputed().begin(), program->precomputed().end());
  }
  return all;
}

}  // namespace

std::int64_t stored_reserve(const TensorLayout& layout, DType dtype) {
  return reader_bytes(layout, dtype, vertex_blocks_per_chunk(layout, dtype));
}

std::int64_t parameter_bytes(const ModelProgram& program, Mode mode) {
  std::int64_t elements = 0;
  for (const ModelParameter& parameter : program.model().parameters) {
    const bool moments = parameter.trainable && mode == Mode::kTrain;
    elements += parameter.rows * parameter.cols * (moments ? 3 : 1);
  }
  return elements * static_cast<std::int64_t>(dtype_bytes(program.real()));
}

std::int64_t process_reserve(std::int64_t workers, std::int64_t parameter_bytes,
                             const GraphCounts& counts) {
  constexpr std::int64_t kProcess = 8 << 20;  // HDF5, the log, the heap's own
  constexpr std::int64_t kWorker = 4 << 20;   // BLAS' buffer, copies for it, stack, heap
  // Of chunks that are there or ahead: their tables of tiles; and of all chunks, sweep by sweep.
  constexpr std::int64_t kChunks = 48, kChunkBytes = 1024;
  const std::int64_t panel_tiles =
      counts.edges.block_count() / std::max<std::int64_t>(1, counts.edges.panel_count());
  return kProcess + kWorker * workers + parameter_bytes +
         kChunks * panel_tiles * static_cast<std::int64_t>(sizeof(PanelTile)) +
         kChunkBytes * counts.edges.chunk_count() + SelfLoops::bytes_of(counts.edges.vertices);
}

std::int64_t output_reserve(const ModelProgram& program, TensorId tensor,
                            const GraphCounts& counts) {
  const std::int64_t cols = program.model().graph.shape(tensor).cols;
  const TensorLayout layout{counts.edges.vertices, cols, counts.edges.block_rows};
  return reader_bytes(layout, program.real(), scratch_io_chunk_blocks(layout, program.real()));
}

std::int64_t metric_reserve(const ModelProgram& program, std::span<const Metric> metrics, Task task,
                            const GraphCounts& counts) {
  if (!need_logits(metrics, task)) return 0;
  const TensorId logits = program.evaluated().logits;
  const std::int64_t cols = program.model().graph.shape(logits).cols;
  const LabelFiles files(task, counts.edges, cols);
  return metric_memory(metrics, task, counts.edges.vertices, cols) +
         stored_reserve(files.labels, files.labels_dtype) +
         stored_reserve(files.splits, DType::kU8) + output_reserve(program, logits, counts);
}

std::int64_t device_reserve(const ModelProgram& program, Mode mode, const GraphCounts& counts) {
  constexpr std::int64_t kPage = 4096;  // that a buffer may take beyond its bytes
  const auto buffers = static_cast<std::int64_t>(4 * program.model().parameters.size()) + 1;
  return parameter_bytes(program, mode) + program.sum_bytes() +
         SelfLoops::bytes_of(counts.edges.vertices) + buffers * kPage;
}

namespace {

PlanOptions options_in(const RunBudget& budget, const Reserved& reserved, std::int64_t host_bytes) {
  // Below 0: there is less than is taken. 0 would be no limit.
  const auto left = [](std::int64_t bytes, std::int64_t taken) {
    return bytes == taken ? -1 : bytes - taken;
  };
  PlanOptions plan = budget.plan;
  plan.reserved_bytes = host_bytes;
  if (budget.host_bytes > 0) plan.memory_bytes = left(budget.host_bytes, host_bytes);
  plan.device_reserved_bytes = reserved.device_bytes;
  if (budget.device_bytes > 0) {
    plan.device_memory_bytes = left(budget.device_bytes, reserved.device_bytes);
  }
  return plan;
}

}  // namespace

std::optional<Plan> try_plan_in_budget(const std::vector<const Program*>& programs,
                                       const GraphCounts& counts, const RunBudget& budget,
                                       const Reserved& reserved) {
  return try_plan(programs, counts, options_in(budget, reserved, reserved.host_bytes));
}

Plan plan_in_budget(const std::vector<const Program*>& programs, const GraphCounts& counts,
                    const RunBudget& budget, const Reserved& reserved) {
  std::optional<Plan> plan = try_plan_in_budget(programs, counts, budget, reserved);
  if (plan) return std::move(*plan);
  // What a process holds varies a little: the least that is named has to work another time.
  constexpr std::int64_t kVariation = 2 << 20;
  return make_plan(programs, counts,
                   options_in(budget, reserved, reserved.host_bytes + kVariation));
}

TrainingPlan::TrainingPlan(const RunConfig& config, const GraphFacts& facts, GraphCounts counts,
                           DType real, const RunBudget& budget)
    : training_(config.model, facts, Mode::kTrain, {.gradients = true}, real,
                {parse_rewrites(config.rewrites)}),
      evaluation_({config.model,
                   facts,
                   Mode::kEvaluate,
                   wanted_of_evaluation(config),
                   real,
                   {parse_rewrites(config.rewrites)}}),
      precompute_(all_precomputed({&training_, &*evaluation_})),
      budget_(budget) {
  budget_.plan.strategy = config.cache_policy;
  budget_.plan.fuse_edges = parse_rewrites(config.rewrites).fusion;
  constexpr std::int64_t kCopies = 8;  // in use, of the state, the best, checkpoints being written
  const std::int64_t metric =
      metric_reserve(evaluation(), config.metrics, config.model.task, counts);
  const std::int64_t parameters = kCopies * parameter_bytes(training_, Mode::kTrain);
  reserved_.host_bytes = budget_.resident_bytes + training_.sum_bytes() + metric +
                         process_reserve(workers() * devices(), parameters, counts);
  if (budget_.plan.device) {
    reserved_.device_bytes =
        budget_.device_resident_bytes + device_reserve(training_, Mode::kTrain, counts);
  }
  // Where neither fits, the budget is named that does for both.
  std::optional<BudgetError> too_small;
  try {
    plan_precompute(counts);
  } catch (const BudgetError& error) {
    too_small = error;
  }
  counts.produced_inputs = precompute_.names();
  try {
    choose_epoch(config, facts, counts);
  } catch (const BudgetError& error) {
    if (!too_small || error.least_bytes >= too_small->least_bytes) too_small = error;
  }
  if (too_small) throw *too_small;
  count_metric_bytes(config, counts);
}

void TrainingPlan::plan_precompute(const GraphCounts& counts) {
  if (precompute_.empty()) return;
  RunBudget budget = budget_;
  budget.plan.store_outputs = true;
  budget.plan.fuse_edges = true;
  precompute_plan_ = plan_in_budget(precompute_.programs(), counts, budget, reserved_);
}

namespace {

// Whether a step may evaluate the parameters that it begins with. It does that one step later than
// an evaluation of its own would, so it has to be wanted of every step.
bool may_evaluate_in_step(const RunConfig& config, const ModelProgram& training,
                          const ModelProgram& evaluation) {
  const Rewrites rewrites = parse_rewrites(config.rewrites);
  return config.eval_every == 1 && rewrites.common && rewrites.dead &&
         !multiplies_on_edges(training.model().graph) &&
         !multiplies_on_edges(evaluation.model().graph);
}

}  // namespace

// Chosen over all epochs: what is computed again or kept, or in part, an evaluation of its own or
// in the next step, for which there is a step more.
void TrainingPlan::choose_epoch(const RunConfig& config, const GraphFacts& facts,
                                const GraphCounts& counts) {
  const DType real = training_.real();
  const Rewrites rewrites = parse_rewrites(config.rewrites);
  const auto model = [&](Mode mode) { return build_model(config.model, facts, mode, real); };
  const auto epochs = static_cast<double>(config.epochs);
  std::vector<Candidate> candidates;
  for (const Recompute recompute : {Recompute::kCheap, Recompute::kRowWise}) {
    const ProgramOptions how{rewrites, recompute};
    candidates.push_back(
        {{model(Mode::kTrain), training_.program().name, {.gradients = true}, how}});
    if (!may_evaluate_in_step(config, training_, *evaluation_)) continue;
    candidates.push_back(
        {{model(Mode::kTrain), model(Mode::kEvaluate), wanted_of_evaluation(config), how},
         (epochs + 1) / epochs});
  }
  const auto programs_of = [&](const Candidate& candidate) {
    std::vector<const Program*> programs{&candidate.training.program()};
    if (!candidate.evaluates()) programs.push_back(&evaluation_->program());
    return programs;
  };
  PlanOptions options = options_in(budget_, reserved_, reserved_.host_bytes);
  std::vector<PlannedEpoch> planned;
  for (Candidate& candidate : candidates) {
    std::optional<PlannedEpoch> own =
        plan_share(candidate, programs_of(candidate), counts, options);
    if (own) planned.push_back(std::move(*own));
  }
  PlannedEpoch* best = choose(planned);
  std::optional<BudgetError> too_small;
  for (std::size_t i = 0; best == nullptr && i < candidates.size(); ++i) {
    try {
      plan_in_budget(programs_of(candidates[i]), counts, budget_, reserved_);
    } catch (const BudgetError& error) {
      if (!too_small || error.least_bytes < too_small->least_bytes) too_small = error;
    }
  }
  if (too_small) throw *too_small;
  OOC_CHECK(best != nullptr);
  options.kept_quarters = best->kept_quarters;
  epoch_ = try_plan(programs_of(*best->candidate), counts, options).value();
  if (best->candidate->evaluates()) evaluation_.reset();
  training_ = std::move(best->candidate->training);
}

std::vector<const ModelProgram*> TrainingPlan::programs() const {
  std::vector<const ModelProgram*> programs{&training_};
  if (evaluation_) programs.push_back(&*evaluation_);
  return programs;
}

std::vector<const Program*> TrainingPlan::epoch_programs() const {
  std::vector<const Program*> programs;
  for (const ModelProgram* model : this->programs()) programs.push_back(&model->program());
  return programs;
}

void TrainingPlan::count_metric_bytes(const RunConfig& config, const GraphCounts& counts) {
  const Task task = config.model.task;
  if (!need_logits(config.metrics, task)) return;
  const TensorId logits = evaluation().evaluated().logits;
  const std::int64_t cols = evaluation().model().graph.shape(logits).cols;
  const LabelFiles files(task, counts.edges, cols);
  // What is one I/O chunk stays at hand from one reading to the next.
  const std::int64_t readings = metric_readings(config.metrics, task, counts.edges.vertices, cols);
  const auto read = [&](const TensorLayout& layout, std::int64_t io_chunk_blocks,
                        std::int64_t bytes) {
    return io_chunk_blocks >= layout.block_count() ? bytes : readings * bytes;
  };
  const ValueId value = evaluation().value(logits);
  const PlannedTensor& planned = planned_output(epoch_, evaluation_section(), value);
  const OutputTraffic precompute = output_traffic(epoch_, evaluation_section(), value);
  metric_.read = read(files.labels, vertex_blocks_per_chunk(files.labels, files.labels_dtype),
                      payload_bytes(files.labels, files.labels_dtype)) +
                 read(files.splits, vertex_blocks_per_chunk(files.splits, DType::kU8),
                      payload_bytes(files.splits, DType::kU8)) +
                 read(planned.layout, planned.io_chunk_blocks, precompute.read);
  metric_.from_device = read(planned.layout, planned.io_chunk_blocks, precompute.from_device);
}

// Of the passes, and an update a parameter, after the sum of what its gradient is made of.
std::int64_t TrainingPlan::launches() const {
  if (epoch_.launches == 0) return 0;
  std::int64_t updates = 0;
  for (const ModelParameter& parameter : training_.model().parameters) {
    if (parameter.trainable) updates += std::ssize(training_.gradient_parts(parameter));
  }
  return epoch_.launches + updates;
}

std::int64_t TrainingPlan::arena_bytes() const {
  std::int64_t bytes = 0;
  for (const Plan* plan : {&epoch_, &precompute_plan_}) {
    for (const DevicePlan& device : plan->devices) bytes = std::max(bytes, device.arena_bytes);
  }
  return bytes;
}

Json TrainingPlan::json() const {
  Json plan;
  plan["epoch"] = plan_to_json(epoch_programs(), epoch_);
  if (!precompute_.empty()) plan["once"] = plan_to_json(precompute_.programs(), precompute_plan_);
  plan["bytes_read_per_epoch"] = bytes_read();
  plan["bytes_written_per_epoch"] = bytes_written();
  plan["bytes_to_device_per_epoch"] = bytes_to_device();
  plan["bytes_from_device_per_epoch"] = bytes_from_device();
  if (launches() > 0) plan["launches_per_epoch"] = launches();
  plan["host_memory"] = budget_.host_bytes;
  plan["device_memory"] = budget_.device_bytes;
  plan["reserved_bytes"] = reserved_.host_bytes;
  plan["device_reserved_bytes"] = reserved_.device_bytes;
  plan["arena_bytes"] = arena_bytes();
  plan["workers"] = budget_.plan.workers;
  const MachineRates& rates = budget_.plan.rates;
  plan["rates"] = {{"storage_read", rates.storage_read}, {"storage_write", rates.storage_write},
                   {"storage_both", rates.storage_both}, {"to_device", rates.to_device},
                   {"from_device", rates.from_device},   {"gather", rates.gather},
                   {"elementwise", rates.elementwise},   {"dropout", rates.dropout},
                   {"packing", rates.packing},           {"multiply_adds", rates.multiply_adds},
                   {"row_sums", rates.row_sums}};
  // Chosen by the machine, and part of what makes results equal to the last bit.
  plan["blas_core"] = blas_core().name;
  return plan;
}

std::string TrainingPlan::text() const {
  std::string text;
  if (!precompute_.empty()) {
    text += "Once, before the first epoch:\n" +
            plan_to_text(precompute_.programs(), precompute_plan_, PlanRuns::kPrecompute) +
            "\nEvery epoch:\n";
  }
  text += plan_to_text(epoch_programs(), epoch_);
  const auto line = [&](const char* memory, std::int64_t planned, std::int64_t reserved,
                        std::int64_t limit) {
    const auto size = [](std::int64_t bytes) { return format_byte_size(bytes); };
    text += fmt::format("{} memory: {} for the plan, {} for what else the process holds{}\n",
                        memory, size(planned), size(reserved),
                        limit > 0 ? fmt::format(", of {}", size(limit)) : ", without a limit");
  };
  std::int64_t computing = 0, below = 0;  // memory of the larger plan
  for (const Plan* plan : {&epoch_, &precompute_plan_}) {
    for (const DevicePlan& device : plan->devices) {
      computing = std::max(computing, device.arena_bytes + device.reduction_bytes);
    }
    if (plan->host) below = std::max(below, plan->host->arena_bytes);
  }
  if (budget_.plan.device) {
    line("device", computing, reserved_.device_bytes, budget_.device_bytes);
    computing = below;
  }
  line("host", computing, reserved_.host_bytes, budget_.host_bytes);
  return text;
}

}  // namespace ooc
