#include "bin/train_sampling_options.h"

#include <fmt/format.h>

#include "storage/base/errors.h"

namespace ooc {
namespace {

void add_fanouts_option(cli::Command& command, const char* names, Fanouts& fanouts,
                        const std::string& description) {
  command.parsed(names, "N,N,...", "numbers above 0, or -1 for all in-edges, with commas between",
                 description, [&fanouts](const std::string& text) {
                   const std::optional<Fanouts> parsed = parse_fanouts(text);
                   if (parsed) fanouts = *parsed;
                   return parsed.has_value();
                 });
}

}  // namespace

void add_sampling_options(cli::Command& command, SamplingConfig& sampling) {
  add_fanouts_option(command, "--fanouts,--num-neighbors", sampling.fanouts,
                     "Train on sampled batches: of a vertex's in-edges so many at most, hop by hop "
                     "from the seeds on. If absent an epoch is one step of the whole graph");
  constexpr std::int64_t kMostSeeds = std::int64_t{1} << 31;
  command.integer("--batch-size", sampling.batch_size, 1, "With --fanouts: seeds of a batch",
                  kMostSeeds);
  command.flag("--replace", sampling.replace,
               "With --fanouts: draw each in-edge from all of them, so that some come twice");
  add_fanouts_option(command, "--eval-fanouts", sampling.eval_fanouts,
                     "With --fanouts: those of evaluations; as --fanouts if absent");
}

void check_sampling(const cli::Command& command, const RunConfig& config) {
  if (config.sampling.fanouts.empty()) {
    for (const char* const option : {"batch-size", "replace", "eval-fanouts"}) {
      if (!command.given(option)) continue;
      throw UsageError(fmt::format("--{} without --fanouts", option), "command line",
                       "without them an epoch is one step of the whole graph: give --fanouts, too");
    }
    return;
  }
  if (config.on.devices != "auto" && config.on.devices != "cpu") {
    throw UsageError(fmt::format("--fanouts with --devices {}", config.on.devices), "command line",
                     "sampled training computes on the CPU");
  }
  for (const char* const option :
       {"simulate", "durations", "trace", "graph", "plan-device", "device-memory", "link-rate",
        "device-partition", "ring", "topology", "cache-policy"}) {
    if (!command.given(option)) continue;
    throw UsageError(fmt::format("--{} with --fanouts", option), "command line",
                     "it is for trainings of the whole graph: leave one of them out");
  }
}

}  // namespace ooc
