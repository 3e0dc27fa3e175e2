#include "sched/plan/search/planned_devices.h"

#include <algorithm>
#include <utility>

#include "sched/plan/io_chunks.h"
#include "sched/plan/partition.h"
#include "sched/plan/search/splits.h"

namespace ooc {
namespace {

// Blocks that lie in one I/O chunk of what passes make, which is one device's.
std::int64_t grain_of(const PassBuilder& builder) {
  const Draft draft = builder.draft(smallest_splits(builder));
  std::int64_t blocks = 1;
  for (const PlannedTensor& tensor : draft.tensors) {
    if (tensor.input) continue;
    blocks = std::max(blocks, tensor.io_chunk_blocks / blocks_in(builder.graph().edges, tensor));
  }
  return blocks;
}

std::vector<Pass*> passes_of(Plan& plan) {
  std::vector<Pass*> passes;
  for (Section& section : plan.sections) {
    for (Pass& pass : section.passes) passes.push_back(&pass);
  }
  return passes;
}

void add_device(Plan& its, std::vector<DevicePlan>& devices, Plan& plan) {
  DevicePlan& device = devices.emplace_back(std::move(its.devices[0]));
  const std::vector<Pass*> passes = passes_of(plan), own = passes_of(its);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    passes[i]->span_group = std::min(passes[i]->span_group, own[i]->span_group);
    passes[i]->batch_steps = std::min(passes[i]->batch_steps, own[i]->batch_steps);
    passes[i]->bytes_read += own[i]->bytes_read;
    passes[i]->bytes_written += own[i]->bytes_written;
    passes[i]->bytes_between_devices += own[i]->bytes_between_devices;
    plan.bytes_between_devices += own[i]->bytes_between_devices;
    device.bytes_in += own[i]->bytes_read;
    device.bytes_out += own[i]->bytes_written;
    device.bytes_passed_on += own[i]->bytes_between_devices;
  }
  plan.bytes_read += device.bytes_in;
  plan.bytes_written += device.bytes_out;
}

}  // namespace

std::vector<BlockRange> own_blocks(const std::vector<const Program*>& programs,
                                   const GraphCounts& graph, const PlanOptions& options) {
  if (options.devices == 1) return {{0, graph.edges.block_count()}};
  return cut_blocks(graph, options.partition, options.devices,
                    grain_of(PassBuilder(programs, graph, options)));
}

const BlockRange& largest_range(const std::vector<BlockRange>& own) {
  return *std::max_element(own.begin(), own.end(), [](const BlockRange& a, const BlockRange& b) {
    return a.count() < b.count();
  });
}

std::optional<PlannedDevices> PlannedDevices::follow(const std::vector<BlockRange>& own,
                                                     const PlanProblem& problem,
                                                     const TierPlan& first, Plan& plan) {
  PlannedDevices all;
  std::vector<DevicePlan> plans;
  plan.bytes_read = plan.bytes_written = plan.bytes_between_devices = 0;
  plan.ring_loaders = problem.share().ring_loaders;
  for (Pass* pass : passes_of(plan)) {
    pass->bytes_read = pass->bytes_written = pass->bytes_between_devices = 0;
  }
  std::int64_t index = 0;
  for (const BlockRange& blocks : own) {
    Device& device = all.devices_.emplace_back();
    device.edges = std::make_unique<EdgeTable>(problem.builder().graph(), blocks);
    device.problem = std::make_unique<PlanProblem>(problem, *device.edges, index++);
    std::optional<TierPlan> tier = first;
    if (blocks.first != problem.share().own.first) {
      tier = follow_tier(*device.problem, first, problem);
    } else {
      count_bytes(*device.problem, tier->kept, tier->plan);
    }
    if (!tier) return std::nullopt;
    add_device(tier->plan, plans, plan);
    device.kept = std::move(tier->kept);
  }
  plan.devices = std::move(plans);
  return all;
}

std::vector<WorkingMemory> PlannedDevices::above() const {
  std::vector<WorkingMemory> all;
  for (const Device& device : devices_) all.push_back({*device.problem, device.kept});
  return all;
}

std::vector<WorkingMemory> PlannedDevices::above_without_residency() const {
  std::vector<WorkingMemory> all;
  for (const Device& device : devices_) {
    all.push_back({*device.problem, device.problem->empty_residency()});
  }
  return all;
}

const ResidentSet& PlannedDevices::kept_of(const BlockRange& own) const {
  std::size_t device = 0;
  while (devices_[device].problem->share().own.first != own.first) ++device;
  return devices_[device].kept;
}

}  // namespace ooc
