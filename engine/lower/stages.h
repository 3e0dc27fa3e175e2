// From a tensor graph to the stages that sched/ runs: operators nothing asks for are dropped;
// gathers over the same edges whose inputs are there share a stage, sums of what edges carry one of
// their own; row-wise work and reductions join the earliest stage in which their inputs are there,
// or sink into a later one that reads what they make, or the rows they sum up, where fewer bytes
// then move; cheap operators are computed again where a later stage needs them rather than kept,
// and edge tensors in every propagation that needs them.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/tensor_graph.h"
#include "sched/plan/program.h"

namespace ooc {

struct StagedGraph {
  Program program;
  std::vector<ValueId> values;  // by tensor; -1: dropped

  ValueId value(TensorId tensor) const { return values[static_cast<std::size_t>(tensor)]; }
};

// What is computed again in a later stage rather than kept for it. Either way gives the same bits.
enum class Recompute {
  kCheap,    // what costs less than reading it back
  kRowWise,  // whatever follows row by row from what is kept: more arithmetic, fewer bytes
};

struct StageOptions {
  bool share = true;  // gathers over the same edges share a stage; otherwise each has its own
  Recompute recompute = Recompute::kCheap;
  bool zeros = true;  // propagations may pass over edges that add zeros (engine/graph/zero_rows.h)
};

// `roots`: the tensors that are wanted: reductions, and vertex tensors (the program's outputs).
// `beside`: more of them. Gathers for these alone share no stage with those for `roots`, whose
// propagations are as they would be without.
StagedGraph make_stages(const TensorGraph& graph, const std::string& name,
                        const std::vector<TensorId>& roots, const StageOptions& options = {},
                        const std::vector<TensorId>& beside = {});

}  // namespace ooc
