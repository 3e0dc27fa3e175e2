#include "bin/train_sampling_options.h"

#include <fmt/format.h>

#include "bin/cli/sampler_options.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

// Takes what `parse` makes of a text. A run's configuration has it empty where it wasn't given.
template <class T, class Parse>
auto parsed_into(T& fanouts, Parse parse) {
  return [&fanouts, parse](const std::string& text) {
    const std::optional<T> parsed = text.empty() ? T{} : parse(text);
    if (parsed) fanouts = *parsed;
    return parsed.has_value();
  };
}

}  // namespace

void add_sampling_options(cli::Command& command, SamplingConfig& sampling) {
  command.parsed("--fanouts,--num-neighbors", "N,N,...", kFanoutsValues,
                 "Train on sampled batches: of a vertex's in-edges so many at most, hop by hop "
                 "from the seeds on. If absent an epoch is one step of the whole graph",
                 parsed_into(sampling.fanouts, parse_fanouts));
  cli::add_sampler_options(command, "With --fanouts. ", sampling);
  command.parsed("--eval-fanouts", "N,N,...|exact", std::string(kFanoutsValues) + "; or exact",
                 "With --fanouts: those of evaluations; exact: the whole graph. If absent as "
                 "--fanouts, and the best model is evaluated on the whole graph in the end",
                 parsed_into(sampling.eval_fanouts, parse_eval_fanouts));
}

namespace {

// What --fanouts needs, and what needs it: options whose values aren't their defaults.
struct Unfit {
  const char* option;
  bool is_given;
};

void check_without_fanouts(const RunConfig& config) {
  const SamplingConfig &sampling = config.sampling, defaults;
  for (const auto& [option, is_given] :
       {Unfit{"batch-size", sampling.batch_size != defaults.batch_size},
        Unfit{"replace", sampling.replace},
        Unfit{"eval-fanouts", sampling.eval_fanouts != defaults.eval_fanouts},
        Unfit{"sampler", sampling.sampler != defaults.sampler},
        Unfit{"batch-dependency", sampling.batch_dependency != defaults.batch_dependency},
        Unfit{"weighted", sampling.weighted},
        Unfit{"checkpoint-batches", config.checkpoint_batches != RunConfig{}.checkpoint_batches}}) {
    if (!is_given) continue;
    throw UsageError(fmt::format("--{} without --fanouts", option), "command line",
                     "without them an epoch is one step of the whole graph: give --fanouts, too");
  }
}

}  // namespace

void check_sampling(const TrainOptions& options, const RunConfig& config) {
  if (config.sampling.fanouts.empty()) return check_without_fanouts(config);
  cli::check_samplers(config.sampling);
  const MachineShare &on = config.on, defaults;
  if (on.devices != "auto" && on.devices != "cpu") {
    throw UsageError(fmt::format("--fanouts with --devices {}", on.devices), "command line",
                     "sampled training computes on the CPU");
  }
  for (const auto& [option, is_given] :
       {Unfit{"simulate", options.simulate}, Unfit{"durations", !options.durations.empty()},
        Unfit{"trace", !options.trace.empty()}, Unfit{"plan-device", !on.plan_device.empty()},
        Unfit{"device-memory", on.device_memory != defaults.device_memory},
        Unfit{"link-rate", on.link_rate != defaults.link_rate},
        Unfit{"device-partition", on.partition != defaults.partition},
        Unfit{"ring", on.ring != defaults.ring}, Unfit{"topology", !on.topology.empty()},
        Unfit{"cache-policy", config.cache_policy != RunConfig{}.cache_policy}}) {
    if (!is_given) continue;
    throw UsageError(fmt::format("--{} with --fanouts", option), "command line",
                     "it is for trainings of the whole graph: leave one of them out");
  }
}

}  // namespace ooc
