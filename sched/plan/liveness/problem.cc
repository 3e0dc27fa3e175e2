#include "sched/plan/liveness/problem.h"

#include <algorithm>
#include <bit>

#include "sched/plan/io_chunks.h"

namespace ooc {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
struct SlotChoice {
  SlotCounts size;
  // One of so many of the memory that it may take beyond the first choice, but for spans that a
  // split asks for.
  std::int64_t share;
};
// From what keeps transfers and compute apart to what overlaps them best.
constexpr SlotChoice kSlotCounts[kSlotChoices] = {{{1, 0, 0, 1}, 1},
                                                  {{2, 0, 0, 2}, 2},
                                                  {{3, 0, 0, 3}, 4},
                                                  {{3, 4 * kMiB, 4 * kMiB, 3}, 8},
                                                  {{3, 8 * kMiB, 16 * kMiB, 4}, 8},
                                                  {{3, 8 * kMiB, 16 * kMiB, 8}, 8},
                                                  {{3, 8 * kMiB, 16 * kMiB, 12}, 8}};
// For a device that takes many row groups and spans in a call, and waits for each.
constexpr SlotChoice kCallSlots[] = {{{3, 64 * kMiB, 32 * kMiB, 16}, 16},
                                     {{3, 256 * kMiB, 64 * kMiB, 24}, 16},
                                     {{3, 512 * kMiB, 128 * kMiB, 48}, 8},
                                     {{3, 512 * kMiB, 256 * kMiB, 96}, 6},
                                     {{3, 512 * kMiB, 512 * kMiB, 192}, 6}};
// Where there is memory left, for so many workers. The widest rows of a pass may be in resident
// ranges: then `times` counts.
constexpr std::uint64_t kFewWorkers = 8;
constexpr SlotCounts kWideSlots[] = {
    {12, 64 * kMiB, 64 * kMiB, 16}, {12, 64 * kMiB, 64 * kMiB, 12}, {8, 64 * kMiB, 64 * kMiB, 8},
    {8, 48 * kMiB, 48 * kMiB, 8},   {6, 32 * kMiB, 32 * kMiB, 6},   {4, 32 * kMiB, 32 * kMiB, 4},
    {4, 24 * kMiB, 24 * kMiB, 4},   {4, 16 * kMiB, 16 * kMiB, 4},   {3, 12 * kMiB, 16 * kMiB, 4},
    {3, 8 * kMiB, 16 * kMiB, 4},    {3, 6 * kMiB, 8 * kMiB, 4},     {3, 4 * kMiB, 8 * kMiB, 4},
    {3, 12 * kMiB, 16 * kMiB, 3},   {3, 8 * kMiB, 16 * kMiB, 3},    {3, 6 * kMiB, 8 * kMiB, 3},
    {3, 4 * kMiB, 4 * kMiB, 3}};

}  // namespace

std::int64_t least_memory_of(const PlanProblem& problem, int pass) {
  const ResidentSet& empty = problem.empty_residency();
  return problem.memory().kept(empty)[static_cast<std::size_t>(pass)] +
         problem.memory().working_set(pass, empty, kSlotCounts[0].size);
}

namespace {

SlotCounts choose_slots(const PlanProblem& problem, int pass, int most) {
  const std::int64_t arena = problem.arena().bytes;
  const ResidentSet& empty = problem.empty_residency();
  const MemoryModel& memory = problem.memory();
  if (arena == 0) return kWideSlots[0];
  const std::int64_t least_bytes = memory.working_set(pass, empty, kSlotCounts[0].size);
  const std::int64_t held = least_memory_of(problem, pass) - least_bytes;
  SlotCounts chosen = kSlotCounts[0].size;
  for (int i = 0; i <= most; ++i) {
    const auto& [slot_counts, share] = kSlotCounts[i];
    const std::int64_t bytes = memory.working_set(pass, empty, slot_counts);
    if (held + bytes > arena || bytes - least_bytes > arena / share) break;
    chosen = slot_counts;
  }
  if (problem.builder().options().compute.lanes > 0 && most == kSlotChoices - 1) {
    for (const auto& [slot_counts, share] : kCallSlots) {
      const std::int64_t bytes = memory.working_set(pass, empty, slot_counts);
      const bool fits = held + bytes <= arena;
      if (fits && bytes - least_bytes <= (arena - held) / share) chosen = slot_counts;
    }
  }
  // Whatever its share; with the chunks of as many spans.
  SlotCounts wide = chosen;
  wide.spans = problem.draft().passes[static_cast<std::size_t>(pass)].slot_spans;
  wide.edge_bytes = std::max(chosen.edge_bytes, kSlotCounts[most].size.edge_bytes);
  return wide.spans > chosen.spans && held + memory.working_set(pass, empty, wide) <= arena
             ? wide
             : chosen;
}

}  // namespace

PlanProblem::PlanProblem(const PassBuilder& builder, const EdgeTable& edges,
                         const std::vector<PassSplit>& splits, int most_slots)
    : builder_(builder),
      edges_(edges),
      readers_{{&edges}},
      share_(builder.share()),
      draft_(builder.draft(splits)),
      timelines_(make_timelines(builder, draft_, share_)),
      aliases_(find_in_place_aliases(builder, draft_, timelines_)),
      memory_(builder, edges, draft_, share_, timelines_, aliases_),
      empty_residency_(make_empty_residency(timelines_, {})) {
  builder.check_stop();
  const PlanOptions& options = builder.options();
  arena_.reduction_bytes = builder.reduction_bytes(draft_);
  if (options.memory_bytes != 0) {  // 1: nothing fits
    arena_.bytes = std::max<std::int64_t>(options.memory_bytes - arena_.reduction_bytes, 1);
  }
  for (int pass = 0; pass < draft_.pass_count(); ++pass)
    slot_rows_.push_back(choose_slots(*this, pass, most_slots));
}

PlanProblem::PlanProblem(const PlanProblem& device, const EdgeTable& edges, std::int64_t index)
    : builder_(device.builder_),
      edges_(edges),
      readers_{{&edges}},
      share_{edges.own(), device.share_.alone, device.share_.ring_loaders, index},
      draft_(device.draft_),
      timelines_(make_timelines(builder_, draft_, share_)),
      aliases_(find_in_place_aliases(builder_, draft_, timelines_)),
      memory_(builder_, edges, draft_, share_, timelines_, aliases_),
      empty_residency_(make_empty_residency(timelines_, {})),
      arena_(device.arena_) {
  for (int pass = 0; pass < draft_.pass_count(); ++pass) {
    slot_rows_.push_back(choose_slots(*this, pass, kSlotChoices - 1));
  }
}

namespace {

std::vector<KeptOnDevice> kept_on(const std::vector<WorkingMemory>& above) {
  std::vector<KeptOnDevice> devices;
  for (const auto& [problem, kept] : above) {
    devices.push_back({problem.share(), problem.timelines(), kept});
  }
  return devices;
}

std::vector<EdgeReader> readers_of(const std::vector<WorkingMemory>& above) {
  std::vector<EdgeReader> readers;
  for (const auto& [problem, kept] : above) readers.push_back({&problem.edges(), kept.edge_chunks});
  return readers;
}

// That some device doesn't keep.
std::array<std::int64_t, 2> first_chunks_of(const std::vector<WorkingMemory>& above) {
  std::array<std::int64_t, 2> first = above.front().kept.edge_chunks;
  for (const auto& [problem, kept] : above) {
    for (std::size_t side = 0; side < first.size(); ++side) {
      first[side] = std::min(first[side], kept.edge_chunks[side]);
    }
  }
  return first;
}

}  // namespace

PlanProblem::PlanProblem(const std::vector<WorkingMemory>& above, const EdgeTable& edges,
                         std::int64_t limit)
    : builder_(above.front().problem.builder_),
      edges_(edges),
      readers_(readers_of(above)),
      share_{edges.own()},
      draft_(above.front().problem.draft_),
      timelines_(timelines_below(draft_, kept_on(above))),
      memory_(builder_, edges_, draft_, share_, timelines_, aliases_, false,
              first_chunks_of(above)),
      empty_residency_(make_empty_residency(timelines_, first_chunks_of(above))),
      arena_{limit, 0},
      slot_rows_(draft_.passes.size()) {}

std::int64_t PlanProblem::sweep_bytes(Direction direction, std::int64_t dst_range_blocks) const {
  std::int64_t bytes = 0;
  for (const EdgeReader& reader : readers_) {
    const std::int64_t first = std::max(ooc::first_chunk(*this, direction),
                                        reader.first_chunks[static_cast<std::size_t>(direction)]);
    bytes += reader.edges->sweep_bytes(direction, dst_range_blocks, first);
  }
  return bytes;
}

std::vector<SlotCounts> PlanProblem::wider_slots(int pass, const ResidentSet& residency) const {
  std::vector<SlotCounts> all_slot_counts;
  if (arena_.bytes == 0) return all_slot_counts;
  const std::int64_t room = arena_.bytes - memory_.kept(residency)[static_cast<std::size_t>(pass)];
  const SlotCounts& narrow = slot_counts(pass);
  const auto take = [&](SlotCounts wide) {
    wide = {std::max(wide.times, narrow.times), std::max(wide.bytes, narrow.bytes),
            std::max(wide.edge_bytes, narrow.edge_bytes), std::max(wide.spans, narrow.spans)};
    if (wide != narrow && memory_.working_set(pass, residency, wide) <= room)
      all_slot_counts.push_back(wide);
  };
  // A step in work holds its slots: more workers take more of them up at once.
  const auto workers = static_cast<std::uint64_t>(builder_.options().workers);
  for (std::uint64_t scale = std::bit_floor(workers / kFewWorkers); scale > 1; scale /= 2) {
    const auto times = static_cast<std::int64_t>(scale);
    const SlotCounts& few = kWideSlots[0];
    take({times * few.times, times * few.bytes, times * few.edge_bytes, few.spans});
  }
  for (const SlotCounts& wide : kWideSlots) take(wide);
  return all_slot_counts;
}

std::vector<std::int64_t> PlanProblem::free(const ResidentSet& residency) const {
  std::vector<std::int64_t> free = memory_.kept(residency);
  for (std::size_t pass = 0; pass < free.size(); ++pass) {
    const auto index = static_cast<int>(pass);
    free[pass] =
        arena_.bytes - free[pass] - memory_.working_set(index, residency, slot_counts(index));
  }
  return free;
}

bool fits(const PlanProblem& problem, const ResidentSet& residency) {
  if (problem.arena().bytes == 0) return true;
  const std::vector<std::int64_t> left = problem.free(residency);
  return std::all_of(left.begin(), left.end(), [](std::int64_t bytes) { return bytes >= 0; });
}

std::int64_t epoch_bytes(const PlanProblem& problem, const ResidentSet& residency) {
  std::int64_t sum = 0;
  for (const Traffic& pass : problem.traffic(residency)) sum += pass.read() + pass.written;
  return sum;
}

}  // namespace ooc
