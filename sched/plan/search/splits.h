// How propagations are split by destinations and by slices.
#pragma once

#include <optional>
#include <vector>

#include "sched/plan/liveness/problem.h"

namespace ooc {

// Of more stages than that fewer choices are tried.
inline constexpr std::size_t kLongProgram = 16;

// By stage, so that an epoch moves few bytes with nothing kept between passes, or with what may
// then be `kept`; with their zeros or what is expected to be left without. Nothing: the budget
// can't hold the smallest working set.
std::optional<std::vector<PassSplit>> choose_splits(const PassBuilder& builder,
                                                    const EdgeTable& edges, bool kept, Zeros zeros);

// The splits that need the least memory, by stage.
std::vector<PassSplit> smallest_splits(const PassBuilder& builder);

}  // namespace ooc
