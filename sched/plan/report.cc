#include "sched/plan/report.h"

#include <set>

namespace ooc {
namespace {

// What lies in one place counts once.
std::int64_t pieces_bytes(const std::vector<Piece>& pieces,
                          const std::vector<EdgePiece>& edge_pieces, int pass) {
  std::int64_t bytes = 0;
  for (const EdgePiece& piece : edge_pieces) bytes += piece.memory.bytes;
  std::set<std::int64_t> places;
  for (const Piece& piece : pieces) {
    if (!lives_in(piece, pass) || !places.insert(piece.memory.offset).second) continue;
    bytes += piece.memory.bytes;
  }
  return bytes;
}

}  // namespace

const char* strategy_name(Strategy strategy) {
  switch (strategy) {
    case Strategy::kNone:
      return "none";
    case Strategy::kLru:
      return "lru";
    case Strategy::kDp:
      return "dp";
    case Strategy::kLp:
      return "lp";
  }
  return "";
}

const char* direction_name(Direction direction) {
  return direction == Direction::kIn ? "in" : "out";
}

const std::string& value_name(const Program& program, ValueId id) {
  return program.values[static_cast<std::size_t>(id)].name;
}

std::int64_t tensor_bytes(const PlannedTensor& tensor) {
  return rows_bytes(tensor, 0, tensor.layout.block_count(), 0, tensor.layout.slice_count());
}

std::int64_t memory_of(const Plan& plan, int index, const Pass& pass) {
  std::int64_t bytes = pass.edge_ring.bytes + pass.worker_scratch.bytes +
                       pieces_bytes(plan.pieces, plan.edge_pieces, index);
  for (const TensorUse& use : pass.uses) bytes += use.memory.bytes;
  return bytes;
}

std::int64_t host_memory_of(const Plan& plan, int index) {
  return plan.host->staging.bytes + pieces_bytes(plan.host->pieces, plan.host->edge_pieces, index);
}

}  // namespace ooc
