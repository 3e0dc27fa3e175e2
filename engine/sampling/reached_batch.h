// What a batch may be expected to reach, from the degrees of a graph's vertices.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/sampling/degree_classes.h"
#include "sched/sampling/expand_pass.h"

namespace ooc {

struct ReachedBatch {
  std::vector<double> asks, edges;  // by hop
  std::vector<double> level_rows;   // of levels 0 to the number of hops
  std::vector<double> reached;      // by class: the share of its vertices
};

// On average, of `count` of the `seeds` of all classes: as if sources were drawn by their
// out-degrees alone. What samplers other than the uniform one choose counts as that one's would.
ReachedBatch reach_batch(const std::vector<HopSampling>& hops, double count,
                         const std::vector<DegreeClass>& degrees, double DegreeClass::*seeds);

}  // namespace ooc
