// Folds over in-edges on the CPU: what a propagation does with the edges of one destination block.
#pragma once

#include "kernels/backend.h"

namespace ooc::cpu {

// accumulator[row] += source[s] for every edge, in (entry, edge) order: the same bits however edges
// are cut into tiles and tiles into groups. Both sides have the strides of a vertex chunk
// (storage/tensor_layout.h): `stride` == `source_stride`, below 8 equal to cols, otherwise a
// multiple of 8 up to 32. Padding is added along; it is never data.
template <class T>
void gather_sum(const TileGroup& group);

}  // namespace ooc::cpu
