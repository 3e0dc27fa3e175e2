// Sums over in-edges of which a batch has a sample.
#pragma once

#include "engine/rewrite/rewrites.h"

namespace ooc {

// A row factor from outside: the in-edges of a vertex in the dataset, by those that the batch
// sampled; 1 where that has none. n x 1, real.
inline constexpr const char* kSampleScaleInput = "sample_scale";

// Scales every sum over in-edges by kSampleScaleInput, so that it is expected to be that over all
// in-edges. Loops that a gather adds are no sample: what they add isn't scaled. It is computed at
// the vertices, or, where it depends on an edge's key, by a second gather. Other folds stay as they
// are. Before tensors have levels.
Rewritten scale_sampled_sums(const TensorGraph& graph);

}  // namespace ooc
