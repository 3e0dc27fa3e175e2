#include "engine/batches/batch_programs.h"

#include <fmt/format.h>

#include <utility>

#include "engine/graph/operators.h"
#include "engine/metrics/metrics.h"
#include "engine/model/build.h"
#include "engine/sampling/levels.h"
#include "engine/sampling/sampled_sums.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

// Nothing is computed once a run: each batch has edges of its own.
Rewrites rewrites_of(const RunConfig& config) {
  Rewrites rewrites = parse_rewrites(config.rewrites);
  rewrites.hoisting = false;
  rewrites.zeros = false;  // all rows of the loss are seeds
  return rewrites;
}

void check_hops(const Fanouts& fanouts, const char* option, int hops, const RunConfig& config) {
  if (fanouts.empty() || std::ssize(fanouts.hops) == hops) return;
  const auto numbers = [](std::ptrdiff_t count) {
    return fmt::format("{} number{}", count, count == 1 ? "" : "s");
  };
  throw UsageError(
      fmt::format("{} {} has {}, and {} gathers {} times from input to output", option,
                  to_text(fanouts), numbers(std::ssize(fanouts.hops)), config.model.model, hops),
      "command line", fmt::format("give {}, or other --layers", numbers(hops)));
}

ModelProgram program_of(const RunConfig& config, const GraphFacts& facts, Mode mode,
                        const Wanted& wanted, DType real) {
  Model model = build_model(config.model, facts, mode, real);
  const SamplingConfig& sampling = config.sampling;
  const bool trains = mode == Mode::kTrain;
  return batch_program(
      std::move(model), config, wanted,
      {trains ? "training" : "evaluation", trains ? sampling.fanouts : sampling.eval_fanouts,
       trains ? "--fanouts" : "--eval-fanouts"});
}

void check_weights(const RunConfig& config, const GraphFacts& facts) {
  if (!config.sampling.weighted || facts.edge_weights) return;
  throw UsageError("--weighted on a dataset without edge weights", config.dataset,
                   "leave it out, or import the dataset with --edge-weights");
}

std::vector<Precomputed> all_precomputed(const ModelProgram& training,
                                         const ModelProgram& evaluation) {
  std::vector<Precomputed> all = training.precomputed();
  all.insert(all.end(), evaluation.precomputed().begin(), evaluation.precomputed().end());
  return all;
}

std::vector<HopSampling> hops_of(const Fanouts& fanouts, const SamplingConfig& sampling) {
  using Choice = HopSampling::Choice;
  const Choice choice = sampling.weighted                     ? Choice::kWeighted
                        : sampling.sampler == Sampler::kLabor ? Choice::kLabor
                                                              : Choice::kUniform;
  std::vector<HopSampling> hops;
  for (const std::int64_t fanout : fanouts.hops) hops.push_back({fanout, sampling.replace, choice});
  return hops;
}

}  // namespace

ModelProgram batch_program(Model model, const RunConfig& config, const Wanted& wanted,
                           const BatchProgramOptions& options) {
  const Rewrites rewrites = rewrites_of(config);
  Precomputed unused;
  BatchModel batch = batch_model(rewrite_model(std::move(model), rewrites, unused));
  check_hops(options.fanouts, options.option, batch.hops, config);
  return {RewrittenModel{std::move(batch.model), std::move(batch.precomputed)},
          options.name,
          wanted,
          {rewrites}};
}

BatchPrograms::BatchPrograms(const RunConfig& config, const GraphFacts& facts, DType real)
    : training((check_weights(config, facts),
                program_of(config, facts, Mode::kTrain, {.gradients = true}, real))),
      evaluation(program_of(config, facts, Mode::kEvaluate,
                            {.logits = need_logits(config.metrics, config.model.task)}, real)),
      precompute(all_precomputed(training, evaluation)) {}

void describe_inputs(const ModelProgram& program, BatchLoaderOptions& options) {
  for (const Value& value : program.program().values) {
    if (value.kind != ValueKind::kInput) continue;
    if (value.name == kSampleScaleInput) {
      options.sample_scale = value.level;
    } else {
      options.inputs.push_back({value.name, value.dtype, value.level, value.cols});
    }
  }
  options.out_edges = false;
  for (const Stage& stage : program.program().stages) {
    if (!stage.propagation) continue;
    options.adds_loops |= stage.propagation->loops;
    options.out_edges |= stage.propagation->direction == Direction::kOut;
  }
  options.real = program.real();
}

std::vector<HopSampling> training_hops(const SamplingConfig& sampling) {
  return hops_of(sampling.fanouts, sampling);
}

std::vector<HopSampling> evaluation_hops(const SamplingConfig& sampling) {
  return hops_of(sampling.eval_fanouts.empty() ? sampling.fanouts : sampling.eval_fanouts,
                 sampling);
}

}  // namespace ooc
