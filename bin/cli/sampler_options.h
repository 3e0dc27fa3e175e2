// How in-edges are chosen: what all programs that sample ask alike.
#pragma once

#include <cstdint>
#include <string>

#include "bin/cli/program.h"
#include "engine/sampling/fanouts.h"

namespace ooc::cli {

inline constexpr std::int64_t kMostSeeds = std::int64_t{1} << 31;  // of a batch

// --batch-size, --replace, --sampler, --batch-dependency, --weighted. `when`: what their
// descriptions begin with.
void add_sampler_options(Command& command, const std::string& when, SamplingConfig& sampling);
// UsageError where they don't go together.
void check_samplers(const SamplingConfig& sampling);

}  // namespace ooc::cli
