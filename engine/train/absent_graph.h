// A graph that isn't there, by its counts: for plans.
#pragma once

#include <optional>
#include <string>

#include "engine/model/parts/model.h"
#include "engine/model/parts/task.h"
#include "sched/plan/options.h"

namespace ooc {

struct AbsentGraph {
  GraphFacts facts;
  GraphCounts counts;
  LabelKind labels = LabelKind::kSingle;
};

// From "vertices=50M,edges=1.5G,features=128,classes=64" (--graph); edges are directed ones, drawn
// evenly. Its labels are of `task`, unless the counts say so. UsageError naming what it takes.
AbsentGraph absent_graph(const std::string& counts, std::optional<Task> task = std::nullopt);

}  // namespace ooc
