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
constexpr SlotChoice kSlotCounts[PlanProblem::kSlotChoices] = {{{1, 0, 0, 1}, 1},
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
    slot_rows_.push_back(choose_slots(pass, most_slots));
}

PlanProblem::PlanProblem(const PlanProblem& device, const EdgeTable& edges,
                         const std::vector<SlotCounts>& all_slot_counts)
    : builder_(device.builder_),
      edges_(edges),
      readers_{{&edges}},
      share_{edges.own(), device.share_.alone},
      draft_(device.draft_),
      timelines_(make_timelines(builder_, draft_, share_)),
      aliases_(find_in_place_aliases(builder_, draft_, timelines_)),
      memory_(builder_, edges, draft_, share_, timelines_, aliases_),
      empty_residency_(make_empty_residency(timelines_, {})),
      arena_(device.arena_),
      slot_rows_(all_slot_counts) {}

namespace {

std::vector<KeptOnDevice> kept_on(const std::vector<PlanProblem::Above>& above) {
  std::vector<KeptOnDevice> devices;
  for (const auto& [problem, kept] : above) {
    devices.push_back({problem.share(), problem.timelines(), kept});
  }
  return devices;
}

std::vector<EdgeReader> readers_of(const std::vector<PlanProblem::Above>& above) {
  std::vector<EdgeReader> readers;
  for (const auto& [problem, kept] : above) readers.push_back({&problem.edges(), kept.edge_chunks});
  return readers;
}

// That some device doesn't keep.
std::array<std::int64_t, 2> first_chunks_of(const std::vector<PlanProblem::Above>& above) {
  std::array<std::int64_t, 2> first = above.front().kept.edge_chunks;
  for (const auto& [problem, kept] : above) {
    for (std::size_t side = 0; side < first.size(); ++side) {
      first[side] = std::min(first[side], kept.edge_chunks[side]);
    }
  }
  return first;
}

}  // namespace

PlanProblem::PlanProblem(const std::vector<Above>& above, const EdgeTable& edges,
                         std::int64_t limit)
    : builder_(above.front().problem.builder_),
      edges_(edges),
      readers_(readers_of(above)),
      share_{edges.own(), true},
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
    const std::int64_t first =
        std::max(first_chunk(direction), reader.first_chunks[static_cast<std::size_t>(direction)]);
    bytes += reader.edges->sweep_bytes(direction, dst_range_blocks, first);
  }
  return bytes;
}

std::int64_t PlanProblem::least(int pass) const {
  return memory_.kept(empty_residency())[static_cast<std::size_t>(pass)] +
         memory_.working_set(pass, empty_residency(), kSlotCounts[0].size);
}

SlotCounts PlanProblem::choose_slots(int pass, int most) const {
  if (arena_.bytes == 0) return kWideSlots[0];
  const std::int64_t least_bytes =
      memory_.working_set(pass, empty_residency(), kSlotCounts[0].size);
  const std::int64_t held = least(pass) - least_bytes;
  SlotCounts chosen = kSlotCounts[0].size;
  for (int i = 0; i <= most; ++i) {
    const auto& [slot_counts, share] = kSlotCounts[i];
    const std::int64_t bytes = memory_.working_set(pass, empty_residency(), slot_counts);
    if (held + bytes > arena_.bytes || bytes - least_bytes > arena_.bytes / share) break;
    chosen = slot_counts;
  }
  if (builder_.options().compute.lanes > 0 && most == kSlotChoices - 1) {
    for (const auto& [slot_counts, share] : kCallSlots) {
      const std::int64_t bytes = memory_.working_set(pass, empty_residency(), slot_counts);
      const bool fits = held + bytes <= arena_.bytes;
      if (fits && bytes - least_bytes <= (arena_.bytes - held) / share) chosen = slot_counts;
    }
  }
  // Whatever its share; with the chunks of as many spans.
  SlotCounts wide = chosen;
  wide.spans = draft_.passes[static_cast<std::size_t>(pass)].slot_spans;
  wide.edge_bytes = std::max(chosen.edge_bytes, kSlotCounts[most].size.edge_bytes);
  return wide.spans > chosen.spans &&
                 held + memory_.working_set(pass, empty_residency(), wide) <= arena_.bytes
             ? wide
             : chosen;
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

bool PlanProblem::fits(const ResidentSet& residency) const {
  if (arena_.bytes == 0) return true;
  const std::vector<std::int64_t> left = free(residency);
  return std::all_of(left.begin(), left.end(), [](std::int64_t bytes) { return bytes >= 0; });
}

std::int64_t epoch_bytes(const PlanProblem& problem, const ResidentSet& residency) {
  std::int64_t sum = 0;
  for (const Traffic& pass : problem.traffic(residency)) sum += pass.read() + pass.written;
  return sum;
}

std::int64_t whole_blocks(const Timeline& timeline, std::int64_t blocks) {
  if (blocks >= timeline.end_block) return timeline.end_block;
  return std::max(timeline.first_block, blocks / timeline.quantum * timeline.quantum);
}

namespace {

// Something that may be kept: intervals of a tensor and accesses that hold it, or edges.
struct Candidate {
  int timeline = -1;  // -1: edges
  int direction = 0;
  std::vector<int> intervals, accesses;
  double gain = 0, cost = 0;  // bytes moved; bytes times passes

  double density() const { return gain / std::max(cost, 1.0); }
};

class Filler {
 public:
  Filler(const PlanProblem& problem, ResidentSet& residency)
      : problem_(problem), residency_(residency) {}

  void run() {
    for (std::size_t t = 0; t < problem_.timelines().size(); ++t) {
      add_tensor(static_cast<int>(t));
    }
    for (const Direction direction : {Direction::kIn, Direction::kOut}) add_edges(direction);
    std::stable_sort(
        candidates_.begin(), candidates_.end(),
        [](const Candidate& a, const Candidate& b) { return a.density() > b.density(); });
    for (const Candidate& candidate : candidates_) raise(candidate);
  }

 private:
  const Timeline& timeline(int t) const {
    return problem_.timelines()[static_cast<std::size_t>(t)];
  }

  void add_tensor(int t) {
    const Timeline& line = timeline(t);
    for (int i = 0; i < line.interval_count(); ++i) add(t, {i}, {});
    for (int i = 0; i < static_cast<int>(line.accesses.size()); ++i) {
      if (line.accesses[static_cast<std::size_t>(i)].sweeps > 1) add(t, {}, {i});
    }
    std::vector<int> all;
    for (int i = 0; i < line.interval_count(); ++i) all.push_back(i);
    if (!all.empty()) add(t, all, {});
  }

  void add(int t, const std::vector<int>& intervals, std::vector<int> accesses) {
    const Timeline& line = timeline(t);
    const PlannedTensor& tensor = problem_.tensor(line);
    const int passes = problem_.draft().pass_count();
    Candidate candidate{t, 0, intervals, {}};
    std::size_t held = 0;
    for (const int i : intervals) {
      held += passes_between(line, i, passes).size();
      accesses.push_back(i);
      if (line.end_of(i) >= 0) accesses.push_back(line.end_of(i));
      if (line.end_of(i) >= 0) candidate.gain += 1;
    }
    std::sort(accesses.begin(), accesses.end());
    accesses.erase(std::unique(accesses.begin(), accesses.end()), accesses.end());
    for (const int i : accesses) {
      const std::int64_t sweeps = line.accesses[static_cast<std::size_t>(i)].sweeps;
      candidate.gain += static_cast<double>(std::max<std::int64_t>(sweeps - 1, 0));
    }
    const bool all = static_cast<int>(intervals.size()) == line.interval_count();
    const bool leaves = line.always_stored || line.leaves;
    if (!line.cyclic && !leaves && all) candidate.gain += 1;  // not written
    candidate.accesses = std::move(accesses);
    const auto bytes = static_cast<double>(payload_bytes(tensor, line.first_block, line.end_block));
    candidate.gain *= bytes;
    candidate.cost = bytes * static_cast<double>(held + candidate.accesses.size());
    candidates_.push_back(std::move(candidate));
  }

  void add_edges(Direction direction) {
    Candidate candidate;
    candidate.direction = static_cast<int>(direction);
    const std::int64_t first = problem_.first_chunk(direction);
    for (const PassDraft& pass : problem_.draft().passes) {
      const StageShape& stage = problem_.builder().stages()[static_cast<std::size_t>(pass.stage)];
      if (!pass.edges || stage.edge_file != direction) continue;
      candidate.gain +=
          static_cast<double>(pass.groups * problem_.sweep_bytes(direction, pass.dst_range_blocks));
    }
    candidate.cost = static_cast<double>(problem_.edges().bytes(direction, first)) *
                     static_cast<double>(problem_.draft().pass_count());
    if (candidate.gain > 0) candidates_.push_back(std::move(candidate));
  }

  ResidentSet raised(const Candidate& candidate, std::int64_t level) const {
    ResidentSet out = residency_;
    if (candidate.timeline < 0) {
      std::int64_t& chunks = out.edge_chunks[static_cast<std::size_t>(candidate.direction)];
      chunks = std::max(chunks, level);
      return out;
    }
    const Timeline& line = timeline(candidate.timeline);
    const std::int64_t blocks = whole_blocks(line, line.first_block + level * line.quantum);
    ResidentPrefix& levels = out.tensors[static_cast<std::size_t>(candidate.timeline)];
    for (const int i : candidate.intervals) {
      std::int64_t& keep = levels.keep[static_cast<std::size_t>(i)];
      keep = std::max(keep, blocks);
    }
    for (const int i : candidate.accesses) {
      std::int64_t& during = levels.during[static_cast<std::size_t>(i)];
      during = std::max(during, blocks);
    }
    return out;
  }

  // As high as it fits.
  void raise(const Candidate& candidate) {
    std::int64_t low = problem_.first_chunk(static_cast<Direction>(candidate.direction));
    std::int64_t high = problem_.edges().chunk_count();
    if (candidate.timeline >= 0) {
      const Timeline& line = timeline(candidate.timeline);
      low = 0;
      high = ceil_div(line.end_block - line.first_block, line.quantum);
    }
    ResidentSet whole = raised(candidate, high);
    if (problem_.fits(whole)) {
      residency_ = std::move(whole);
      return;
    }
    while (high - low > 1) {  // `low` fits, `high` doesn't
      const std::int64_t middle = (low + high) / 2;
      (problem_.fits(raised(candidate, middle)) ? low : high) = middle;
    }
    residency_ = raised(candidate, low);
  }

  const PlanProblem& problem_;
  ResidentSet& residency_;
  std::vector<Candidate> candidates_;
};

}  // namespace

void fill_memory(const PlanProblem& problem, ResidentSet& residency) {
  Filler(problem, residency).run();
}

namespace {

// About a percent less of a tensor in a pass; false: it has none there.
bool lower_in(const Timeline& line, int pass, int pass_count, ResidentPrefix& levels) {
  const std::int64_t step = (line.end_block - line.first_block) / 100 + 1;
  bool lowered = false;
  const auto lower = [&](std::int64_t& level) {
    if (level == line.first_block) return;
    level = whole_blocks(line, level - step);
    lowered = true;
  };
  for (std::size_t i = 0; i < line.accesses.size(); ++i) {
    if (line.accesses[i].pass == pass && !line.accesses[i].pins) lower(levels.during[i]);
  }
  for (int i = 0; i < line.interval_count(); ++i) {
    const std::vector<int> between = passes_between(line, i, pass_count);
    std::int64_t& keep = levels.keep[static_cast<std::size_t>(i)];
    if (std::find(between.begin(), between.end(), pass) != between.end()) lower(keep);
    keep = std::min(keep, levels.during[static_cast<std::size_t>(i)]);
    if (line.end_of(i) < 0) continue;
    keep = std::min(keep, levels.during[static_cast<std::size_t>(line.end_of(i))]);
  }
  return lowered;
}

}  // namespace

bool lower_pass(const PlanProblem& problem, int pass, ResidentSet& residency) {
  const auto at = static_cast<std::size_t>(pass);
  const std::int64_t before = problem.free(residency)[at];
  const int passes = problem.draft().pass_count();
  ResidentSet best;
  double best_loss = 0;
  for (std::size_t t = 0; t < problem.timelines().size(); ++t) {
    ResidentSet lower = residency;
    if (!lower_in(problem.timelines()[t], pass, passes, lower.tensors[t])) continue;
    const std::int64_t freed = problem.free(lower)[at] - before;
    const double loss =
        static_cast<double>(epoch_bytes(problem, lower) - epoch_bytes(problem, residency)) /
        static_cast<double>(std::max<std::int64_t>(freed, 1));
    if (!best.tensors.empty() && loss >= best_loss) continue;
    best_loss = loss;
    best = std::move(lower);
  }
  if (best.tensors.empty()) return false;
  residency = std::move(best);
  return true;
}

void trim(const PlanProblem& problem, ResidentSet& residency) {
  while (problem.arena().bytes > 0) {
    const std::vector<std::int64_t> left = problem.free(residency);
    const auto fullest = std::min_element(left.begin(), left.end());
    if (*fullest >= 0) return;
    if (lower_pass(problem, static_cast<int>(fullest - left.begin()), residency)) continue;
    residency.edge_chunks = problem.empty_residency().edge_chunks;
    if (!problem.fits(residency)) residency = problem.empty_residency();
    return;
  }
}

}  // namespace ooc
