// The part of the operator table that holds element-wise operators, activations, column groups
// (heads), ranges of columns, what is made of degrees and labels, and GRU cells: operators
// of vertices and of edges alike.
#pragma once

#include <span>

#include "engine/graph/operators.h"
#include "kernels/spec/row_kernels.h"

namespace ooc {

// Entries of the operator table; their kernels are of the same names (kernels/spec/row_kernels.h).
std::span<const OperatorDef> row_operators();

// V x 1, real, of the input "degrees"; the same factor gives the same tensor.
TensorId degree_factor(TensorGraph& graph, DegreeFactor factor);
// V x 1, uint8, of the input "labels": those of a binary task.
TensorId binary_labels(TensorGraph& graph);

}  // namespace ooc
