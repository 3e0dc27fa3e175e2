// The devices of a plan: whose blocks are whose, and what the memory of each keeps.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sched/plan/residency/tier.h"

namespace ooc {

// In the order of their blocks. UsageError as cut_blocks().
std::vector<BlockRange> own_blocks(const std::vector<const Program*>& programs,
                                   const GraphCounts& graph, const PlanOptions& options);
// That has the most blocks.
const BlockRange& largest_range(const std::vector<BlockRange>& own);

class PlannedDevices {
 public:
  // Passes and what stays on the device for which `plan` was made, `first`, stand; the others keep
  // as much. Leaves all devices in the plan, with the bytes that passes move over all links, and
  // windows and batches as wide as all of them have slots for. Nothing: some device's least working
  // set doesn't fit. The problem outlives it.
  static std::optional<PlannedDevices> follow(const std::vector<BlockRange>& own,
                                              const PlanProblem& problem, const TierPlan& first,
                                              Plan& plan);

  std::vector<WorkingMemory> above() const;
  // As if they kept nothing between passes.
  std::vector<WorkingMemory> above_without_residency() const;
  const ResidentSet& kept_of(const BlockRange& own) const;

 private:
  struct Device {
    std::unique_ptr<EdgeTable> edges;
    std::unique_ptr<PlanProblem> problem;
    ResidentSet kept;
  };
  std::vector<Device> devices_;
};

}  // namespace ooc
