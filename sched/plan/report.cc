#include "sched/plan/report.h"

#include <set>

#include "sched/plan/io_chunks.h"

namespace ooc {
namespace {

// What lies in one place counts once.
std::int64_t ranges_bytes(const std::vector<ResidentRange>& ranges,
                          const std::vector<EdgeRange>& edge_ranges, int pass) {
  std::int64_t bytes = 0;
  for (const EdgeRange& range : edge_ranges) bytes += range.memory.bytes;
  std::set<std::int64_t> places;
  for (const ResidentRange& range : ranges) {
    if (!is_alive(range, pass) || !places.insert(range.memory.offset).second) continue;
    bytes += range.memory.bytes;
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

std::int64_t memory_of(const DevicePlan& device, int index) {
  const PassMemory& memory = device.passes[static_cast<std::size_t>(index)];
  std::int64_t bytes = memory.edges.bytes + memory.worker_scratch.bytes +
                       ranges_bytes(device.ranges, device.edge_ranges, index);
  for (const UseMemory& use : memory.uses) bytes += use.bytes;
  return bytes;
}

std::int64_t host_memory_of(const Plan& plan, int index) {
  return plan.host->staging.bytes + ranges_bytes(plan.host->ranges, plan.host->edge_ranges, index);
}

}  // namespace ooc
