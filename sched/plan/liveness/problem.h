// The second half of planning: what stays in memory between passes, for passes that are given.
#pragma once

#include <string>
#include <vector>

#include "sched/plan/liveness/memory.h"

namespace ooc {

// What there is of an arena for the passes of a problem.
struct ArenaLimit {
  std::int64_t bytes = 0;            // 0: no limit
  std::int64_t reduction_bytes = 0;  // beside the arena: of partial sums
};

class PlanProblem;

// Sizes of slots, from the smallest one on.
inline constexpr int kSlotChoices = 7;

// A device's memory, and what it keeps.
struct WorkingMemory {
  const PlanProblem& problem;
  const ResidentSet& kept;
};

// Passes with their splits, and the memory there is for them: the one in which they work, or the
// one below it.
class PlanProblem {
 public:
  // The references must outlive it. `most_slots`: passes have slots of that size at most, of
  // kSlotChoices from the smallest one on, but for spans that splits ask for.
  PlanProblem(const PassBuilder& builder, const EdgeTable& edges,
              const std::vector<PassSplit>& splits, int most_slots = kSlotChoices - 1);
  // Of another device, number `index`, with other blocks: the same passes.
  PlanProblem(const PlanProblem& device, const EdgeTable& edges, std::int64_t index);
  // Of a memory of `limit` bytes (0: no limit) below those of devices, which keep so much. `edges`:
  // of all blocks.
  PlanProblem(const std::vector<WorkingMemory>& above, const EdgeTable& edges, std::int64_t limit);
  PlanProblem(const PlanProblem&) = delete;
  PlanProblem& operator=(const PlanProblem&) = delete;

  const PassBuilder& builder() const { return builder_; }
  const EdgeTable& edges() const { return edges_; }
  const Draft& draft() const { return draft_; }
  const DeviceShare& share() const { return share_; }
  const std::vector<Timeline>& timelines() const { return timelines_; }
  const std::vector<InPlaceAlias>& aliases() const { return aliases_; }
  // Each pair saves memory, but ties two places.
  void set_aliases(std::vector<InPlaceAlias> aliases) { aliases_ = std::move(aliases); }
  const MemoryModel& memory() const { return memory_; }
  const ArenaLimit& arena() const { return arena_; }
  ArenaLimit& arena() { return arena_; }
  const SlotCounts& slot_counts(int pass) const {
    return slot_rows_[static_cast<std::size_t>(pass)];
  }
  // Wider ones than the pass has that memory is left for, without fragmentation; the widest first.
  std::vector<SlotCounts> wider_slots(int pass, const ResidentSet& residency) const;
  std::vector<SlotCounts> all_slot_counts() const { return slot_rows_; }
  void set_slots(std::vector<SlotCounts> all_slot_counts) {
    slot_rows_ = std::move(all_slot_counts);
  }

  const ResidentSet& empty_residency() const { return empty_residency_; }  // is kept
  // What one sweep over all destination ranges reads of edge chunks, when none are kept.
  std::int64_t sweep_bytes(Direction direction, std::int64_t dst_range_blocks) const;
  // Of the limit, by pass, without fragmentation; negative: it doesn't fit.
  std::vector<std::int64_t> free(const ResidentSet& residency) const;
  std::vector<Traffic> traffic(const ResidentSet& residency, Zeros zeros = Zeros::kMoved) const {
    return traffic_of(builder_, readers_, draft_, share_, timelines_, residency, zeros);
  }

 private:
  const PassBuilder& builder_;
  const EdgeTable& edges_;
  std::vector<EdgeReader> readers_;
  DeviceShare share_;
  Draft draft_;
  std::vector<Timeline> timelines_;
  std::vector<InPlaceAlias> aliases_;
  MemoryModel memory_;
  ResidentSet empty_residency_;
  ArenaLimit arena_;
  std::vector<SlotCounts> slot_rows_;
};

// The least that a pass works with, when nothing is kept.
std::int64_t least_memory_of(const PlanProblem& problem, int pass);
bool fits(const PlanProblem& problem, const ResidentSet& residency);
inline const PlannedTensor& tensor_of(const PlanProblem& problem, const Timeline& timeline) {
  return problem.draft().tensors[static_cast<std::size_t>(timeline.tensor)];
}
// Of edge chunks, those before are in a memory above.
inline std::int64_t first_chunk(const PlanProblem& problem, Direction direction) {
  return problem.empty_residency().edge_chunks[static_cast<std::size_t>(direction)];
}

// Read and written in an epoch.
std::int64_t epoch_bytes(const PlanProblem& problem, const ResidentSet& residency);

// Blocks rounded down to what a level may be.
std::int64_t whole_blocks(const Timeline& timeline, std::int64_t blocks);

// Raises levels as far as memory goes, first what saves the most bytes for its memory and time.
void fill_memory(const PlanProblem& problem, ResidentSet& residency);

// Lowers a level in a pass a little, where that costs the fewest bytes moved. False:
// there is none.
bool lower_pass(const PlanProblem& problem, int pass, ResidentSet& residency);
// Lowers levels until all fits, each time where it costs the fewest bytes moved.
void trim(const PlanProblem& problem, ResidentSet& residency);

}  // namespace ooc
