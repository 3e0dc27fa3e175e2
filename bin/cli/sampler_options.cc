#include "bin/cli/sampler_options.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/train/config_words.h"
#include "storage/base/errors.h"

namespace ooc::cli {

void add_sampler_options(Command& command, const std::string& when, SamplingConfig& sampling) {
  command.integer("--batch-size", sampling.batch_size, 1, when + "Seeds of a batch", kMostSeeds);
  command.flag("--replace", sampling.replace,
               when + "Draw each in-edge from all of them, so that some come twice");
  command.choice("--sampler", sampling.sampler,
                 std::vector<std::pair<std::string, Sampler>>(kSamplers.begin(), kSamplers.end()),
                 when +
                     "neighbor: each vertex chooses by itself; labor: vertices of a batch "
                     "prefer the same sources, so that it has fewer vertices");
  command.integer("--batch-dependency", sampling.batch_dependency, 1,
                  "With --sampler labor: so many batches in turn prefer the same sources", 1 << 20);
  command.flag("--weighted", sampling.weighted, when + "An in-edge's chance goes by its weight");
}

void check_samplers(const SamplingConfig& sampling) {
  const auto refuse = [](const char* both) {
    throw UsageError(both, "command line", "leave one of them out");
  };
  const bool labor = sampling.sampler == Sampler::kLabor;
  if (labor && sampling.replace) refuse("--sampler labor with --replace");
  if (labor && sampling.weighted) refuse("--sampler labor with --weighted");
  if (sampling.weighted && sampling.replace) refuse("--weighted with --replace");
  if (labor || sampling.batch_dependency == 1) return;
  throw UsageError("--batch-dependency without --sampler labor", "command line",
                   "give that, too, or leave it out");
}

}  // namespace ooc::cli
