#include "sched/run/simulated_graph.h"

#include "sched/plan/passes/edge_table.h"
#include "storage/stores/scratch_tensor.h"

namespace ooc {
namespace {

std::unique_ptr<EdgeFile> edge_file(const GraphCounts& counts, Direction direction) {
  const EdgeTable table(counts);
  std::vector<std::int64_t> bytes;
  for (std::int64_t chunk = 0; chunk < table.chunk_count(); ++chunk) {
    bytes.push_back(table.chunk_bytes(direction, chunk));
  }
  return std::make_unique<EdgeFile>(counts.edges, bytes);
}

}  // namespace

SimulatedGraph::SimulatedGraph(const GraphCounts& counts, const Plan& plan, BlockIo& io)
    : in_(edge_file(counts, Direction::kIn)),
      out_(counts.symmetric ? nullptr : edge_file(counts, Direction::kOut)) {
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.input) add(io, tensor);
  }
  if (inputs_.contains("degrees")) return;  // which loops are added by
  PlannedTensor degrees;
  degrees.name = std::string("degrees");
  degrees.layout = {counts.edges.vertices, kDegreeColumns, counts.edges.block_rows};
  degrees.dtype = DType::kI32;
  add(io, degrees);
}

void SimulatedGraph::add(BlockIo& io, const PlannedTensor& tensor) {
  stores_.push_back(std::make_unique<ScratchTensor>(io, "the simulation", tensor.dtype,
                                                    tensor.layout, tensor.io_chunk_blocks));
  inputs_[tensor.name] = stores_.back().get();
}

}  // namespace ooc
