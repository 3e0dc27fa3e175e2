// What an executor reads, of a graph of which only the counts are known: to simulate with.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sched/run/executor.h"

namespace ooc {

// Its edge chunks and the plan's inputs take their bytes, and hold nothing.
class SimulatedGraph {
 public:
  // The plan was made of the counts. `io`, a SimulatedBlockIo or one above it, outlives it.
  SimulatedGraph(const GraphCounts& counts, const Plan& plan, BlockIo& io);

  EdgeFiles edges() const { return {*in_, out_ ? *out_ : *in_}; }
  const std::map<std::string, TensorStore*>& inputs() const { return inputs_; }

 private:
  void add(BlockIo& io, const PlannedTensor& tensor);

  std::unique_ptr<EdgeFile> in_, out_;  // one, where the graph is symmetric
  std::vector<std::unique_ptr<TensorStore>> stores_;
  std::map<std::string, TensorStore*> inputs_;
};

}  // namespace ooc
