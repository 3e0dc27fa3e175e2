// Programs by hand and the counts of graphs, for plans to be made of.
#pragma once

#include <string>
#include <vector>

#include "sched/plan/plan.h"

namespace ooc::test {

struct ProgramBuilder {
  Program program;

  ValueId add(const std::string& name, ValueKind kind, std::int64_t cols, std::int64_t rows = 1,
              DType dtype = DType::kF32);
  Stage& stage(const std::string& name);
  void row(const std::string& op, std::vector<ValueId> inputs, std::vector<ValueId> outputs);
  // The last stage sums rows of `from` along edges into `to`, in slices where it is wide.
  void propagate(Direction direction, ValueId from, ValueId to, bool loops = false);
  // What it sums is scaled by the rows of `factor`, one column, of the vertices that fold.
  void scale_edges(ValueId factor);
};

// x -> h1 = x W1 (row); a1 = sum over in-edges, scaled by a factor of their destination; and so on
// for `layers`, loss, and back. Every layer keeps what its gradient needs.
Program train_program(int layers, std::int64_t features, std::int64_t hidden, std::int64_t classes);
// What its steps make is zero by half, and of the loss' gradient all that isn't of the train split.
Program sparse_program();
// The walk of a two-layer GCN whose first aggregation is an input: four passes.
Program hoisted_program(std::int64_t features, std::int64_t hidden, std::int64_t classes);

GraphCounts graph_counts(std::int64_t vertices, std::int64_t edges,
                         std::int64_t block_rows = 16384);

}  // namespace ooc::test
