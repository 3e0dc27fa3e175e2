#include "engine/batches/batch_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/batches/judged_rows.h"
#include "engine/machine/devices.h"
#include "engine/train/training_plan.h"
#include "storage/base/byte_size.h"

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

double seconds_of(std::int64_t read, std::int64_t written, const MachineRates& rates) {
  const auto in = static_cast<double>(read), out = static_cast<double>(written);
  return std::max(
      {in / rates.storage_read, out / rates.storage_write, (in + out) / rates.storage_both});
}

// An evaluation on the whole graph takes all memory in between.
bool keeps_hot(const RunConfig& config) { return !config.sampling.eval_fanouts.exact; }

BatchForecast forecast_kind(const BatchPlan& plan, const BatchMemory& memory, bool trains) {
  BatchLoaderOptions training = plan.training, options = trains ? training : plan.evaluation;
  training.memory = options.memory = memory;
  return forecast_batches(plan.counts, options, trains ? &DegreeClass::train : &DegreeClass::judged,
                          forecast_hot(plan.counts, training, &DegreeClass::train),
                          trains && !keeps_hot(plan.config));
}

// Beside what is computed once, files of two superbatches are there at once, one after the other:
// the epoch's last one and the evaluation's, or the next epoch's.
std::int64_t scratch_of(const BatchPlan& plan, const BatchForecast& trained,
                        const std::optional<BatchForecast>& judged) {
  const double training = trained.scratch, evaluation = judged ? judged->scratch : 0;
  double most = training + evaluation;
  const bool is_followed = !judged || plan.config.eval_every > 1;
  if (is_followed || trained.superbatches > 1) most = std::max(most, 2 * training);
  if (judged && judged->superbatches > 1) most = std::max(most, 2 * evaluation);
  return computed_bytes(plan.counts, plan.training) + static_cast<std::int64_t>(most);
}

ScratchNeed needed_scratch(const BatchPlan& plan, const BatchMemory& memory) {
  const BatchForecast training = forecast_kind(plan, memory, true);
  std::optional<BatchForecast> evaluation;
  if (plan.counts.judged > 0 && keeps_hot(plan.config)) {
    evaluation = forecast_kind(plan, memory, false);
  }
  BatchLoaderOptions loading = plan.training;
  loading.memory = memory;
  const std::int64_t together =
      batches_together(loading, plan.counts.vertices(), plan.counts.edges(), plan.counts.name);
  return {scratch_of(plan, training, evaluation),
          std::min(together, std::max(training.batches, evaluation ? evaluation->batches : 0))};
}

// What stays in memory while an evaluation on the whole graph runs; batches had it before.
std::int64_t bytes_brought_in(const Plan& exact) {
  std::int64_t bytes = 0;
  for (const ResidentRange& range : exact.devices.front().ranges) {
    const bool stays = range.first_pass == 0 && range.last_pass + 1 == pass_count(exact);
    const bool is_input = exact.tensors[static_cast<std::size_t>(range.tensor)].input;
    if (stays && is_input) bytes += range.memory.bytes;
  }
  for (const EdgeRange& range : exact.devices.front().edge_ranges) bytes += range.memory.bytes;
  return bytes;
}

std::string size(double bytes) { return format_byte_size(static_cast<std::int64_t>(bytes)); }

std::string counted(std::int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

Json json_of(const BatchForecast& of) {
  return {{"batches", of.batches},
          {"superbatches", of.superbatches},
          {"batch_vertices", std::llround(of.batch_vertices)},
          {"batch_edges", std::llround(of.batch_edges)},
          {"hot_rows", std::llround(of.hot_rows)},
          {"hot_share", of.hot_share},
          {"edge_readings", of.edge_readings},
          {"edge_bytes", std::llround(of.edge_bytes)},
          {"list_bytes_read", std::llround(of.list_bytes_read)},
          {"list_bytes_written", std::llround(of.list_bytes_written)},
          {"input_bytes", std::llround(of.input_bytes)},
          {"cold_bytes", std::llround(of.cold_bytes)}};
}

std::string text_of(const char* name, const BatchForecast& of) {
  std::string text =
      fmt::format("{:<10} {} of about {:.0f} vertices and {:.0f} edges, {}\n", name,
                  counted(of.batches, "batch", "batches"), of.batch_vertices, of.batch_edges,
                  counted(of.superbatches, "superbatch", "superbatches"));
  text +=
      fmt::format("           reads {} of edges ({}), {} of inputs, {} of lists, {} of cold rows\n",
                  size(of.edge_bytes), counted(of.edge_readings, "reading", "readings"),
                  size(of.input_bytes), size(of.list_bytes_read), size(of.cold_bytes));
  text += fmt::format("           writes {} of lists, {} of cold rows\n",
                      size(of.list_bytes_written), size(of.cold_bytes));
  text += fmt::format("           {:.0f} hot rows, {:.1f} % of what batches ask for\n", of.hot_rows,
                      100 * of.hot_share);
  return text;
}

}  // namespace

BatchLoaderOptions loader_options(const ModelProgram& program, std::vector<HopSampling> hops,
                                  const SamplingConfig& sampling, const std::string& scratch) {
  BatchLoaderOptions loading;
  loading.hops = std::move(hops);
  loading.batch_size = sampling.batch_size;
  if (sampling.sampler == Sampler::kLabor) loading.batch_dependency = sampling.batch_dependency;
  loading.name = program.program().name;
  loading.scratch = scratch;
  loading.workers = workers_of(1);
  describe_inputs(program, loading);
  return loading;
}

BatchPlan plan_batches(const RunConfig& config, const BatchPrograms& programs,
                       const BatchExecutor& training, const BatchExecutor& evaluation,
                       SampledCounts counts, const RunBudget& budget, const std::string& scratch) {
  BatchPlan plan{config, budget, std::move(counts), {}, {}, {}};
  plan.training =
      loader_options(programs.training, training_hops(config.sampling), config.sampling, scratch);
  plan.evaluation = loader_options(programs.evaluation, evaluation_hops(config.sampling),
                                   config.sampling, scratch);
  pack_alike(plan.training, plan.evaluation);
  BatchWork work{{{plan.training, training, {&DegreeClass::train}}},
                 parameter_bytes(programs.training, Mode::kTrain),
                 JudgedRows::bytes(programs.evaluation, config, plan.counts.labels,
                                   plan.counts.classes, plan.counts.judged)};
  if (plan.counts.judged > 0) {
    work.runs.push_back({plan.evaluation, evaluation, {&DegreeClass::valid, &DegreeClass::test}});
  }
  plan.memory = share_memory(plan.counts, work, budget);
  fit_scratch(
      budget.scratch_bytes, scratch.empty() ? "the run's directory" : scratch,
      [&](const BatchMemory& memory) { return needed_scratch(plan, memory); }, plan.memory.loading);
  plan.training.memory = plan.evaluation.memory = plan.memory.loading;
  plan.training.limits = plan.memory.limits.front();
  plan.evaluation.limits = plan.memory.limits.back();
  return plan;
}

BatchEpochForecast forecast_epoch(const BatchPlan& plan, const Plan* exact) {
  BatchEpochForecast epoch;
  const MachineRates& rates = plan.budget.plan.rates;
  const auto add = [&](std::int64_t read, std::int64_t written) {
    epoch.bytes_read += read;
    epoch.bytes_written += written;
  };
  double least_read = 0;
  const auto add_batches = [&](bool trains) {
    const BatchForecast of = forecast_kind(plan, plan.memory.loading, trains);
    add(of.bytes_read(), of.bytes_written());
    const BatchForecast least = forecast_kind(plan, unlimited_memory(), trains);
    least_read += least.edge_bytes + least.input_bytes;
    return of;
  };
  epoch.training = add_batches(true);
  if (exact != nullptr) {
    epoch.exact = {exact->bytes_read + bytes_brought_in(*exact), exact->bytes_written};
    add(epoch.exact->read, epoch.exact->written);
  } else if (plan.counts.judged > 0) {
    epoch.evaluation = add_batches(false);
  }
  epoch.scratch = scratch_of(plan, epoch.training, epoch.evaluation);
  epoch.seconds = seconds_of(epoch.bytes_read, epoch.bytes_written, rates);
  epoch.bound_seconds = seconds_of(static_cast<std::int64_t>(least_read), 0, rates);
  return epoch;
}

Json plan_to_json(const BatchPlan& plan, const BatchEpochForecast& epoch) {
  Json json;
  json["fanouts"] = plan.config.sampling.fanouts.hops;
  json["batch_size"] = plan.config.sampling.batch_size;
  json["batches"] = plan.batches();
  json["host_memory"] = plan.budget.host_bytes;
  json["fixed_bytes"] = plan.memory.fixed_bytes;
  json["level_rows"] = plan.training.limits.level_rows;
  const BatchMemory& memory = plan.memory.loading;
  json["memory"] = {{"hot_rows", memory.hot_rows},
                    {"lists", memory.lists},
                    {"ranges", memory.ranges},
                    {"edge_slots", memory.edge_slots},
                    {"writes", memory.writes}};
  Json& forecast = json["forecast"];
  forecast = {{"bytes_read_per_epoch", epoch.bytes_read},
              {"bytes_written_per_epoch", epoch.bytes_written},
              {"seconds", epoch.seconds},
              {"bound_seconds", epoch.bound_seconds},
              {"scratch_bytes", epoch.scratch},
              {"training", json_of(epoch.training)}};
  if (epoch.evaluation) forecast["evaluation"] = json_of(*epoch.evaluation);
  if (epoch.exact) {
    forecast["evaluation"] = {{"bytes_read", epoch.exact->read},
                              {"bytes_written", epoch.exact->written}};
  }
  json["blas_core"] = blas_core().name;
  return json;
}

Json figures_to_json(const SuperbatchFigures& of) {
  const LoadedBytes planned = of.planned();
  return {{"batches", of.batches},
          {"vertices", of.vertices},
          {"edges", of.edges},
          {"hot_rows", of.hot_rows},
          {"cold_rows", of.cold_rows},
          {"edge_bytes", of.edge_bytes},
          {"list_bytes_read", of.list_bytes_read},
          {"list_bytes_written", of.list_bytes_written},
          {"input_bytes", of.input_bytes},
          {"cold_bytes", of.cold_bytes},
          {"planned_read", planned.read},
          {"planned_written", planned.written},
          {"bytes_read", of.moved.read},
          {"bytes_written", of.moved.written}};
}

std::string plan_to_text(const BatchPlan& plan, const BatchEpochForecast& epoch) {
  const SamplingConfig& sampling = plan.config.sampling;
  const std::vector<std::int64_t> rows =
      most_level_rows(plan.training, plan.counts.vertices(), plan.counts.edges());
  std::string text = fmt::format("an epoch   {} batches of {} seeds, fan-outs {}\n", plan.batches(),
                                 sampling.batch_size, to_text(sampling.fanouts));
  text +=
      fmt::format("a batch    up to {} vertices, by level {}\n", rows.back(), fmt::join(rows, " "));
  if (plan.training.limits.level_rows != rows) {
    text += fmt::format("           there is memory for {}, by level {}: more than is likely\n",
                        plan.training.limits.level_rows.back(),
                        fmt::join(plan.training.limits.level_rows, " "));
  }
  if (plan.budget.host_bytes > 0) {
    const BatchMemory& memory = plan.memory.loading;
    const auto size = [](std::int64_t bytes) { return format_byte_size(bytes); };
    text += fmt::format(
        "memory     {} in all: {} for programs, parameters and the largest batch, {} for rows that "
        "many batches ask for, {} for lists of vertices and edges, {} for what is on its way\n",
        size(plan.budget.host_bytes), size(plan.memory.fixed_bytes), size(memory.hot_rows),
        size(4 * memory.lists), size(2 * (memory.ranges + memory.edge_slots + memory.writes)));
  }
  text += text_of("training", epoch.training);
  if (epoch.evaluation) text += text_of("evaluation", *epoch.evaluation);
  if (epoch.exact) {
    text +=
        fmt::format("evaluation on the whole graph: reads {}, writes {}\n",
                    format_byte_size(epoch.exact->read), format_byte_size(epoch.exact->written));
  }
  text += fmt::format(
      "storage    reads {}, writes {}, in {:.3g} s at its measured rates, {:.3g} s if all that is "
      "made had memory; files of up to {}\n",
      size(static_cast<double>(epoch.bytes_read)), size(static_cast<double>(epoch.bytes_written)),
      epoch.seconds, epoch.bound_seconds, size(static_cast<double>(epoch.scratch)));
  return text;
}

std::string absent_batch_plan(const RunConfig& config, const AbsentGraph& graph,
                              const RunBudget& budget, bool json) {
  const Devices devices("cpu", budget);
  const BatchPrograms programs(config, graph.facts, DType::kF32);
  const BatchExecutor training(devices.first(), programs.training.program());
  const BatchExecutor evaluation(devices.first(), programs.evaluation.program());
  const BatchPlan plan = plan_batches(config, programs, training, evaluation, sampled_counts(graph),
                                      budget, config.scratch);
  const BatchEpochForecast epoch = forecast_epoch(plan);
  return json ? plan_to_json(plan, epoch).dump(2) + "\n" : plan_to_text(plan, epoch);
}

}  // namespace ooc
