// The part of the operator table that holds losses: sums a split, and the gradient of the mean over
// the train split.
#pragma once

#include <span>

#include "engine/graph/operators.h"

namespace ooc {

// Entries of the operator table; their kernels are of the same names (kernels/spec/row_kernels.h).
std::span<const OperatorDef> loss_operators();

}  // namespace ooc
