// Which rows are known to be zero in a backward pass: those of a loss' gradient outside the train
// split, and what operators make of them row by row (OperatorDef::zero_rows). And which elements
// are expected to be (OperatorDef::density).
#pragma once

#include <vector>

#include "engine/graph/tensor_graph.h"
#include "sched/plan/program.h"

namespace ooc {

// By tensor: the input of splits outside of whose train split its rows are zero; -1: none is known.
std::vector<TensorId> zero_outside_train(const TensorGraph& graph);

// By tensor: the share of its elements that is expected not to be zero, but for such rows.
std::vector<double> expected_densities(const TensorGraph& graph);

// Propagation::splits: the input of splits, if an edge adds nothing but zeros to any fold where its
// neighbour isn't in their train split, and leaving it out changes no bit of the others. -1: none.
// `zero`: by value, likewise, of what lies in memory.
ValueId splits_of_edges(const Program& program, const Propagation& work,
                        const std::vector<ValueId>& zero);

}  // namespace ooc
