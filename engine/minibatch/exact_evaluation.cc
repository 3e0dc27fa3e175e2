#include "engine/minibatch/exact_evaluation.h"

#include <array>
#include <utility>

#include "engine/machine/devices.h"
#include "engine/model/build.h"
#include "engine/train/program_run.h"
#include "engine/train/training_plan.h"

namespace ooc {
namespace {

// What is computed once a run would have to stay in memory beside the batches.
Rewrites rewrites_of(const RunConfig& config) {
  Rewrites rewrites = parse_rewrites(config.rewrites);
  rewrites.hoisting = false;
  return rewrites;
}

ModelProgram program_of(const Dataset& dataset, const RunConfig& config, DType real) {
  const Wanted wanted{.loss = true, .logits = need_logits(config.metrics, config.model.task)};
  return {build_model(config.model, facts_of(dataset), Mode::kEvaluate, real),
          "evaluation",
          wanted,
          {rewrites_of(config)}};
}

Plan plan_of(const ModelProgram& program, const Dataset& dataset, const RunConfig& config,
             RunBudget budget, std::int64_t kept_bytes) {
  budget.plan.workers = workers_of(1);
  const GraphCounts counts = counts_of(dataset);
  Reserved reserved;
  reserved.host_bytes =
      kept_bytes + metric_reserve(program, config.metrics, config.model.task, counts);
  return plan_in_budget({&program.program()}, counts, budget, reserved);
}

}  // namespace

ExactEvaluation::ExactEvaluation(const Dataset& dataset, const RunConfig& config, DType real,
                                 RunBudget budget, std::int64_t kept_bytes)
    : dataset_(dataset),
      config_(config),
      program_(program_of(dataset, config, real)),
      plan_(plan_of(program_, dataset, config, std::move(budget), kept_bytes)) {}

std::optional<ExactEvaluation::Result> ExactEvaluation::run(
    Backend& backend, BlockIo& io, const std::string& scratch,
    const std::vector<ParameterValues>& parameters, const std::atomic<bool>* stop) const {
  ParameterStore store(backend, program_.real(), program_.model().parameters, Mode::kEvaluate);
  store.restore(parameters, "memory");
  const GraphInputs inputs(io, dataset_);
  ProgramRun run({backend, io, dataset_, scratch, workers_of(1)}, {&program_}, plan_, inputs,
                 store);
  if (!run.run(0, {}, stop)) return std::nullopt;
  const Evaluated evaluated = program_.evaluated();
  const std::array<SplitLoss, 3> losses = run.losses(0, evaluated.loss);
  Result result;
  result.train_loss = losses[0].loss;
  result.valid_loss = losses[1].loss;
  auto scores = run_scores(run, 0, evaluated, inputs, config_.metrics, config_.model.task,
                           result.counters.bytes_read, stop);
  if (!scores) return std::nullopt;
  result.scores = std::move(*scores);
  result.counters += run.take_counters();
  return result;
}

}  // namespace ooc
