// The part of the operator table that holds element-wise operators, activations, column groups
// (heads), ranges of columns, GRU cells and losses: operators of vertices and of edges alike.
#pragma once

#include <span>

#include "engine/operators.h"

namespace ooc {

// Entries of the operator table; their kernels are of the same names (kernels/row_kernels.h).
std::span<const OperatorDef> row_operators();

}  // namespace ooc
