#include "bin/train_sampling_options.h"

#include <fmt/format.h>

#include "engine/train/config_words.h"
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
  command.choice("--sampler", sampling.sampler,
                 std::vector<std::pair<std::string, Sampler>>(kSamplers.begin(), kSamplers.end()),
                 "With --fanouts. neighbor: each vertex chooses by itself; labor: vertices of a "
                 "batch prefer the same sources, so that it has fewer vertices");
  command.integer("--batch-dependency", sampling.batch_dependency, 1,
                  "With --sampler labor: so many batches in turn prefer the same sources", 1 << 20);
  command.flag("--weighted", sampling.weighted,
               "With --fanouts: an in-edge's chance goes by its weight");
  add_fanouts_option(command, "--eval-fanouts", sampling.eval_fanouts,
                     "With --fanouts: those of evaluations; as --fanouts if absent");
}

void check_sampling(const cli::Command& command, const RunConfig& config) {
  if (config.sampling.fanouts.empty()) {
    for (const char* const option :
         {"batch-size", "replace", "eval-fanouts", "sampler", "batch-dependency", "weighted"}) {
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
  const SamplingConfig& sampling = config.sampling;
  const auto refuse = [](const char* both) {
    throw UsageError(both, "command line", "leave one of them out");
  };
  const bool labor = sampling.sampler == Sampler::kLabor;
  if (labor && sampling.replace) refuse("--sampler labor with --replace");
  if (labor && sampling.weighted) refuse("--sampler labor with --weighted");
  if (sampling.weighted && sampling.replace) refuse("--weighted with --replace");
  if (!labor && sampling.batch_dependency > 1) {
    throw UsageError("--batch-dependency without --sampler labor", "command line",
                     "give that, too, or leave it out");
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
