#include "engine/train/program_run.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "sched/plan/io_chunks.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

std::vector<const Program*> programs_of(const std::vector<const ModelProgram*>& models) {
  std::vector<const Program*> programs;
  for (const ModelProgram* model : models) programs.push_back(&model->program());
  return programs;
}

std::int64_t elements(const ModelParameter& parameter) { return parameter.rows * parameter.cols; }

}  // namespace

ProgramRun::ProgramRun(const RunResources& resources, std::vector<const ModelProgram*> programs,
                       const Plan& plan, const GraphInputs& inputs, ParameterStore& parameters)
    : backend_(resources.backend),
      programs_(std::move(programs)),
      plan_(plan),
      executor_(resources, programs_of(programs_), plan, inputs.stores()) {
  for (int section = 0; section < static_cast<int>(programs_.size()); ++section) {
    for (const ModelParameter& parameter : program(section).model().parameters) {
      const ValueId value = program(section).value(parameter.tensor);
      if (value >= 0) {
        executor_.bind_parameter(section, value, parameters.data(parameter.name));
      }
      if (program(section).gradient_parts(parameter).size() < 2) continue;
      sums_[{section, parameter.tensor}] = backend_.allocate(
          static_cast<std::size_t>(elements(parameter)) * dtype_bytes(program(section).real()));
    }
  }
}

const void* ProgramRun::gradient(int section, const ModelParameter& parameter) {
  const std::vector<ValueId> parts = program(section).gradient_parts(parameter);
  const auto part = [&](std::size_t i) { return executor_.reduction(section, parts.at(i)); };
  if (parts.size() == 1) return part(0);
  const DeviceBuffer& sum = *sums_.at({section, parameter.tensor});
  backend_.queue(QueueKind::kCompute).copy(sum.data(), part(0), sum.bytes());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    backend_.accumulate(program(section).real(), elements(parameter), sum.data(), part(i));
  }
  return sum.data();
}

std::vector<double> ProgramRun::read_reduction(int section, TensorId tensor) const {
  const TensorShape& shape = program(section).model().graph.shape(tensor);
  OOC_CHECK(shape.dtype == DType::kF64);
  return ooc::read_reduction(backend_, executor_, section, program(section).value(tensor),
                             shape.rows * shape.cols);
}

std::array<SplitLoss, 3> ProgramRun::losses(int section, TensorId loss) const {
  const std::vector<double> sums = read_reduction(section, loss);
  // Loss, right ones, labels and, if any, weights; of values loss and labels.
  const std::size_t cols = sums.size() / 3;
  std::array<SplitLoss, 3> losses;
  for (std::size_t split = 0; split < losses.size(); ++split) {
    const double* row = sums.data() + split * cols;
    losses[split].loss = row[0] / row[cols - 1];
    if (cols > 2) losses[split].accuracy = row[1] / row[2];
  }
  return losses;
}

BlockRows ProgramRun::rows(int section, TensorId tensor) {
  const ValueId value = program(section).value(tensor);
  const PlannedTensor& planned = planned_output(plan_, section, value);
  return {
      planned.dtype, planned.layout, planned.io_chunk_blocks,
      [this, section, value](std::int64_t first_block, std::int64_t end_block, std::byte* rows) {
        executor_.read_output(section, value, first_block, end_block, rows);
      }};
}

std::vector<double> read_reduction(Backend& backend, const Executor& executor, int section,
                                   ValueId value, std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  Queue& queue = backend.queue(QueueKind::kCompute);
  queue.copy(values.data(), executor.reduction(section, value), values.size() * sizeof(double));
  queue.wait(queue.record());
  return values;
}

void warn_of_zero_factors(double vertices) {
  if (vertices == 0) return;
  spdlog::warn(
      "vertices where the weights of in-edges or of out-edges add up to 0 or less: {:.0f}; the "
      "factors of their degrees are 0",
      vertices);
}

const PlannedTensor& planned_output(const Plan& plan, int section, ValueId value) {
  const Section& planned = plan.sections[static_cast<std::size_t>(section)];
  const int tensor = planned.tensors[static_cast<std::size_t>(value)];
  OOC_CHECK(tensor >= 0);
  return plan.tensors[static_cast<std::size_t>(tensor)];
}

namespace {

// Whether one of a memory's ranges holds the block after the pass.
bool is_held(const Plan& plan, const std::vector<ResidentRange>& ranges,
             const PlannedTensor& tensor, std::int64_t block, int pass) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const ResidentRange& range) {
    const bool there = range.first_pass <= range.last_pass
                           ? pass >= range.first_pass && pass <= range.last_pass
                           : pass >= range.first_pass || pass <= range.last_pass;
    return there && &plan.tensors[static_cast<std::size_t>(range.tensor)] == &tensor &&
           block >= range.first_block && block < range.end_block;
  });
}

}  // namespace

OutputTraffic output_traffic(const Plan& plan, int section, ValueId value) {
  const PlannedTensor& tensor = planned_output(plan, section, value);
  const Section& planned = plan.sections[static_cast<std::size_t>(section)];
  const int pass = planned.first_pass + static_cast<int>(planned.passes.size()) - 1;
  OutputTraffic traffic;
  for (std::int64_t io_chunk = 0; io_chunk < io_chunk_count(tensor); ++io_chunk) {
    const std::int64_t block = io_chunk * tensor.io_chunk_blocks;
    std::int64_t bytes = 0;
    for (std::int64_t slice = 0; slice < tensor.layout.slice_count(); ++slice) {
      bytes += io_chunk_payload(tensor, io_chunk, slice);
    }
    if (is_held(plan, plan.devices[0].ranges, tensor, block, pass)) {
      if (plan.host) traffic.from_device += bytes;
    } else if (!plan.host || !is_held(plan, plan.host->ranges, tensor, block, pass)) {
      traffic.read += bytes;
    }
  }
  return traffic;
}

std::optional<std::vector<Scores>> scores_of(const EvaluatedRows& evaluated,
                                             const GraphInputs& inputs,
                                             std::span<const Metric> metrics, Task task,
                                             std::int64_t& bytes_read,
                                             const std::atomic<bool>* stop) {
  std::optional<std::vector<Scores>> scores(metrics.size());
  if (need_logits(metrics, task)) {
    BlockRows logits = evaluated.logits();
    BlockRows labels = stored_rows(inputs.store("labels"), bytes_read);
    BlockRows splits = stored_rows(inputs.store("splits"), bytes_read);
    scores = compute_metrics(metrics, task, logits, labels, splits, stop);
  }
  for (std::size_t i = 0; scores && i < metrics.size(); ++i) {
    if (needs_logits(metrics[i], task)) continue;
    const auto [train, valid, test] = evaluated.losses();
    (*scores)[i] = {train.accuracy, valid.accuracy, test.accuracy};
  }
  return scores;
}

std::optional<std::vector<Scores>> run_scores(ProgramRun& run, int section,
                                              const Evaluated& evaluated, const GraphInputs& inputs,
                                              std::span<const Metric> metrics, Task task,
                                              std::int64_t& bytes_read,
                                              const std::atomic<bool>* stop) {
  const EvaluatedRows rows{[&] { return run.rows(section, evaluated.logits); },
                           [&] { return run.losses(section, evaluated.loss); }};
  return scores_of(rows, inputs, metrics, task, bytes_read, stop);
}

}  // namespace ooc
