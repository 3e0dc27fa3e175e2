#include "sched/plan/residency/tier.h"

#include <algorithm>
#include <optional>

#include "sched/plan/io_chunks.h"
#include "sched/plan/residency/dp.h"
#include "sched/plan/residency/lp.h"
#include "sched/plan/residency/lru.h"
#include "sched/plan/span_windows.h"

namespace ooc {
namespace {

// Slots hold the spans of a window and two steps to the next one; or one, where otherwise a window
// had fewer than kFew spans.
constexpr std::int64_t kStepsAhead = 2, kFew = 4;
constexpr std::int64_t kMostGridBlocks = 32768;  // of an index
constexpr std::int64_t kGroups = 8;  // of a destination range's blocks, where rows come and go

// Spans of which what a task reads of the streamed tensors stays in the last-level cache, of
// which 32 MiB are taken to be there: edges find their rows there. At least one.
std::int64_t cached_spans(const PlanProblem& problem, const PassDraft& pass) {
  constexpr std::int64_t kCacheBytes = 32 << 20;
  const EdgeLayout& edges = problem.builder().graph().edges;
  const StageShape& stage = problem.builder().stages()[static_cast<std::size_t>(pass.stage)];
  const std::int64_t by_slice = stage.pass.slice_local_cols;
  std::int64_t row_bytes = 0;
  for (const UseDraft& use : pass.uses) {
    if (use.role != UseRole::kStreamed) continue;
    const PlannedTensor& tensor = problem.draft().tensors[static_cast<std::size_t>(use.tensor)];
    std::int64_t cols = tensor.layout.cols;
    if (cols == by_slice) cols = std::min(cols, kSliceWidth);
    row_bytes += cols * static_cast<std::int64_t>(dtype_bytes(tensor.dtype));
  }
  if (row_bytes == 0) return edges.span_count();
  return std::clamp<std::int64_t>(kCacheBytes / (row_bytes * edges.span_rows), 1,
                                  std::max<std::int64_t>(1, edges.span_count()));
}

// Spans whose edges into a panel fill an index, about.
std::int64_t indexed_spans(const PlanProblem& problem, const PassDraft& pass) {
  const GraphCounts& graph = problem.builder().graph();
  const EdgeLayout& edges = graph.edges;
  const StageShape& stage = problem.builder().stages()[static_cast<std::size_t>(pass.stage)];
  const EdgeBytes& file = stage.edge_file == Direction::kIn ? graph.in : graph.out;
  const std::int64_t chunk = std::max<std::int64_t>(1, ceil_div(file.bytes, edges.chunk_count()));
  const std::int64_t rows = std::min(edges.panel_blocks * edges.block_rows, kMostIndexedRows);
  const std::int64_t spare = stage.pass.edge_scratch_bytes - edge_index_bytes(edges.data, rows, 0);
  const std::int64_t of_chunk = std::max<std::int64_t>(1, edge_index_bytes(edges.data, 0, chunk));
  return std::clamp<std::int64_t>(spare / of_chunk, 1, edges.span_count());
}

// Where slots allow it.
std::int64_t widest_window(const PlanProblem& problem, const PassDraft& pass) {
  const std::int64_t forced = problem.builder().options().span_group;
  if (forced > 0) return forced;
  const std::int64_t cached = cached_spans(problem, pass);
  if (!problem.builder().options().compute.indexes_edges) return cached;
  return std::max(cached, indexed_spans(problem, pass));
}

class TierPlanner {
 public:
  explicit TierPlanner(PlanProblem& problem)
      : problem_(problem), builder_(problem.builder()), options_(builder_.options()) {}

  // Slots as wide as the first one's where they fit.
  std::optional<TierPlan> follow(const TierPlan& first, const PlanProblem& its) {
    const std::vector<SlotCounts> narrow = problem_.all_slot_counts();
    if (!fits(problem_, problem_.empty_residency())) return std::nullopt;
    problem_.set_slots(first.slots);
    ResidentSet residency = scaled(first, its);
    if (!fits(problem_, residency) || !fits(problem_, problem_.empty_residency())) {
      problem_.set_slots(narrow);
    }
    TierPlan tier = place_all(std::move(residency));
    tier.slots = problem_.all_slot_counts();
    return tier;
  }

  TierPlan run() {
    std::string remark;
    std::optional<TierPlan> best;
    for (ResidentSet& residency : decide(remark)) {
      TierPlan tier = place_all(std::move(residency));
      tier.plan.remark = remark;
      if (!best || moved_bytes(tier) < moved_bytes(*best)) best = std::move(tier);
    }
    best->slots = problem_.all_slot_counts();
    widen_slots(*best);
    return std::move(*best);
  }

 private:
  // The same shares of what this device has.
  ResidentSet scaled(const TierPlan& first, const PlanProblem& its) const {
    ResidentSet residency = problem_.empty_residency();
    for (std::size_t t = 0; t < residency.tensors.size(); ++t) {
      const Timeline &line = problem_.timelines()[t], &from = its.timelines()[t];
      const auto level = [&](std::int64_t of_first) {
        const double share = static_cast<double>(of_first - from.first_block) /
                             static_cast<double>(from.end_block - from.first_block);
        if (of_first == from.end_block) return line.end_block;
        const auto blocks = static_cast<double>(line.end_block - line.first_block);
        return whole_blocks(line, line.first_block + static_cast<std::int64_t>(share * blocks));
      };
      ResidentPrefix& levels = residency.tensors[t];
      const ResidentPrefix& kept = first.kept.tensors[t];
      std::transform(kept.keep.begin(), kept.keep.end(), levels.keep.begin(), level);
      std::transform(kept.during.begin(), kept.during.end(), levels.during.begin(), level);
    }
    residency.edge_chunks = first.kept.edge_chunks;
    return residency;
  }

  // What the strategy keeps; several, where what is better depends on the places that are found.
  std::vector<ResidentSet> decide(std::string& remark) const {
    if (options_.strategy == Strategy::kNone) return {problem_.empty_residency()};
    ResidentSet everything = make_full_residency(problem_.timelines(), builder_.graph());
    if (fits(problem_, everything)) return {std::move(everything)};
    if (options_.strategy == Strategy::kLru) return {choose_by_lru(problem_)};
    if (options_.strategy == Strategy::kDp) {
      ResidentSet found = choose_by_dp(problem_, remark);
      if (remark.empty()) return {std::move(found)};
      return {std::move(found), choose_by_lru(problem_)};  // a long program's best may be worse
    }
    ResidentSet filled = problem_.empty_residency();
    fill_memory(problem_, filled);
    return {std::move(filled), choose_by_lp(problem_)};
  }

  std::vector<ResidentRange> find_places(Plan& plan) const {
    return place(plan.tensors, problem_.timelines(), problem_.aliases(), problem_.arena().bytes,
                 plan.devices[0]);
  }

  // Gives up what finds no place.
  TierPlan place_all(ResidentSet residency) {
    trim(problem_, residency);
    while (true) {
      Plan plan = lay_out(residency);
      const std::vector<ResidentRange> left = find_places(plan);
      if (left.empty()) {
        count_bytes(problem_, residency, plan);
        return {std::move(plan), std::move(residency), {}};
      }
      give_up(left, residency);
    }
  }

  // Gives memory that is left to slots: of all passes, or, where a resident range then finds no
  // place, pass by pass.
  void widen_slots(TierPlan& tier) {
    const std::vector<SlotCounts> narrow = problem_.all_slot_counts();
    std::vector<std::vector<SlotCounts>> wider;
    std::vector<SlotCounts> all_slot_counts = narrow;
    for (std::size_t pass = 0; pass < narrow.size(); ++pass) {
      wider.push_back(problem_.wider_slots(static_cast<int>(pass), tier.kept));
      if (!wider[pass].empty()) all_slot_counts[pass] = wider[pass].front();
    }
    if (!place_with(all_slot_counts, tier)) {
      all_slot_counts = narrow;
      for (std::size_t pass = 0; pass < narrow.size(); ++pass) {
        for (const SlotCounts& slot_counts : wider[pass]) {
          all_slot_counts[pass] = slot_counts;
          if (place_with(all_slot_counts, tier)) break;
          all_slot_counts[pass] = narrow[pass];
        }
      }
    }
    problem_.set_slots(narrow);
  }

  // False: a resident range finds no place, and the plan is what it was.
  bool place_with(const std::vector<SlotCounts>& all_slot_counts, TierPlan& tier) {
    problem_.set_slots(all_slot_counts);
    Plan plan = lay_out(tier.kept);
    if (!find_places(plan).empty()) return false;
    plan.remark = tier.plan.remark;
    count_bytes(problem_, tier.kept, plan);
    tier.plan = std::move(plan);
    tier.slots = all_slot_counts;
    return true;
  }

  // Lowers levels by what found no place; others, where that is in memory anyway.
  void give_up(const std::vector<ResidentRange>& left, ResidentSet& residency) const {
    for (const ResidentRange& range : left) {
      const Timeline& line = timeline_of(problem_.timelines(), range.tensor, range.first_block);
      const auto index = static_cast<std::size_t>(&line - problem_.timelines().data());
      ResidentPrefix& levels = residency.tensors[index];
      const ResidentPrefix before = levels;
      lower(line, range, levels);
      if (levels.during != before.during || levels.keep != before.keep) continue;
      if (!lower_pass(problem_, range.first_pass, residency))
        residency = problem_.empty_residency();
    }
    trim(problem_, residency);
  }

  // Every interval that the resident range's passes reach into, and the accesses at their ends.
  static void lower(const Timeline& line, const ResidentRange& range, ResidentPrefix& levels) {
    for (std::size_t i = 0; i < line.accesses.size(); ++i) {
      if (!is_alive(range, line.accesses[i].pass)) continue;
      if (levels.during[i] < range.end_block || line.accesses[i].pins) continue;
      levels.during[i] -= range.end_block - range.first_block;
      levels.during[i] -= levels.during[i] % line.quantum;
    }
    for (int i = 0; i < line.interval_count(); ++i) {
      std::int64_t& keep = levels.keep[static_cast<std::size_t>(i)];
      keep = std::min(keep, levels.during[static_cast<std::size_t>(i)]);
      if (line.end_of(i) < 0) continue;
      keep = std::min(keep, levels.during[static_cast<std::size_t>(line.end_of(i))]);
    }
  }

  Plan lay_out(const ResidentSet& residency) const {
    Plan plan;
    plan.strategy = options_.strategy;
    DevicePlan device;
    device.reduction_bytes = problem_.arena().reduction_bytes;
    plan.tensors = problem_.draft().tensors;
    plan.sections = builder_.sections(problem_.draft());
    device.ranges =
        make_ranges(problem_.draft(), problem_.timelines(), problem_.aliases(), residency);
    const std::vector<std::int64_t> stored =
        stored_from(problem_.draft(), problem_.timelines(), residency);
    device.own = problem_.share().own;
    device.stored_from_block.resize(plan.tensors.size());
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
      const PlannedTensor& tensor = plan.tensors[t];
      const std::int64_t blocks = tensor.layout.block_count();
      if (tensor.input) continue;
      device.stored_from_block[t] = stored[t];
      if (stored[t] == blocks) continue;
      plan.stored_bytes += rows_bytes(tensor, 0, blocks, 0, tensor.layout.slice_count());
    }
    for (const Direction direction : {Direction::kIn, Direction::kOut}) {
      const std::int64_t chunks = residency.edge_chunks[static_cast<std::size_t>(direction)];
      const std::int64_t bytes = problem_.memory().edge_range(direction, chunks);
      if (bytes == 0) continue;
      const EdgeTable& edges = problem_.edges();
      device.edge_ranges.push_back({direction,
                                    chunks,
                                    {0, bytes},
                                    first_chunk(problem_, direction),
                                    edges.first_panel(),
                                    edges.end_panel()});
    }
    int index = 0;
    for (Section& section : plan.sections) {
      for (Pass& pass : section.passes) {
        device.passes.push_back(lay_out_pass(residency, index++, pass));
      }
    }
    plan.devices.push_back(std::move(device));
    return plan;
  }

  // Also chooses the pass's windows.
  PassMemory lay_out_pass(const ResidentSet& residency, int index, Pass& pass) const {
    const PassDraft& draft = problem_.draft().passes[static_cast<std::size_t>(index)];
    const SlotCounts& slot_counts = problem_.slot_counts(index);
    const EdgeLayout& edges = builder_.graph().edges;
    PassMemory memory;
    std::int64_t row_spans = 0;  // in slots; 0: all are in memory
    for (const UseDraft& use : draft.uses) {
      const std::int64_t during = problem_.memory().during(index, use, residency);
      memory.uses.push_back(problem_.memory().use(index, use, during, slot_counts));
      const std::int64_t slots = memory.uses.back().slots;
      if (use.role != UseRole::kStreamed || slots == 0) continue;
      const std::int64_t spans =  // of an item
          streamed_blocks(edges, tensor_of(use)) * tensor_of(use).layout.block_rows /
          edges.span_rows;
      // Windows may begin and end within an item.
      const std::int64_t held = std::max<std::int64_t>(1, slots - (spans > 1 ? 1 : 0)) * spans;
      row_spans = row_spans == 0 ? held : std::min(row_spans, held);
    }
    memory.worker_scratch.bytes = problem_.memory().worker_scratch(index);
    if (draft.rows && pass.lanes > 0) pass.batch_steps = full_batch(draft, memory, pass);
    if (!draft.edges) return memory;
    const auto direction = static_cast<std::size_t>(
        builder_.stages()[static_cast<std::size_t>(draft.stage)].edge_file);
    memory.edges =
        problem_.memory().edge_slot_memory(index, residency.edge_chunks[direction], slot_counts);
    choose_windows(draft, row_spans, memory.edges.slots, pass);
    return memory;
  }

  // Steps whose groups fill the lanes of a call, as far as slots hold two such batches: one is in
  // work, the next one comes in.
  std::int64_t full_batch(const PassDraft& draft, const PassMemory& memory,
                          const Pass& pass) const {
    std::int64_t steps =
        std::max<std::int64_t>(1, pass.lanes / ceil_div(pass.step_rows, pass.group_rows));
    for (std::size_t i = 0; i < draft.uses.size(); ++i) {
      const UseRole role = draft.uses[i].role;
      if (memory.uses[i].slots == 0 || (role != UseRole::kRows && role != UseRole::kOutput))
        continue;
      const PlannedTensor& tensor = tensor_of(draft.uses[i]);
      const std::int64_t chunks = memory.uses[i].slots / tensor.layout.slice_count();
      const std::int64_t of_chunk =
          tensor.io_chunk_blocks * tensor.layout.block_rows / pass.step_rows;
      // A batch begins anywhere in an I/O chunk.
      steps = std::min(steps, std::max<std::int64_t>(1, (chunks / 2 - 1) * of_chunk + 1));
    }
    return steps;
  }

  // Of a pass whose slots hold rows of so many spans and so many chunks; 0: all of them are in
  // memory.
  void choose_windows(const PassDraft& draft, std::int64_t row_spans, std::int64_t chunks,
                      Pass& pass) const {
    const EdgeLayout& edges = builder_.graph().edges;
    // Small groups take small steps. Where rows don't come and go, or there are several slices, of
    // which each one's rows had better serve a whole panel while they are in cache: panels.
    const std::int64_t slices = pass.slices_at_once > 0
                                    ? pass.slices_at_once
                                    : ceil_div(pass.slice_local_cols, kSliceWidth);
    const bool panels = builder_.options().compute.indexes_edges;  // few kernels are launched
    const bool small = row_spans > 0 && slices <= 1 && !panels;
    const std::int64_t ranges =
        small ? ceil_div(kGroups * edges.panel_blocks, pass.dst_range_blocks) : 1;
    pass.group_blocks = ceil_div(edges.panel_blocks, std::min(ranges, edges.panel_blocks));
    if (panels) {
      pass.group_blocks = std::clamp<std::int64_t>(kMostIndexedRows / edges.block_rows, 1,
                                                   std::min(edges.panel_blocks, kMostGridBlocks));
    }
    const std::int64_t groups = ceil_div(pass.dst_range_blocks, pass.group_blocks);
    pass.span_group = widest_window(problem_, draft);
    // A window's chunks are in use, the next one's come in; what groups of a panel are apart by is
    // less than a window, of all panels together.
    const auto fits = [&](std::int64_t steps) {
      const std::int64_t ahead = steps * SpanWindows::step(pass.span_group, groups);
      return (row_spans == 0 || pass.span_group + ahead <= row_spans) &&
             (chunks == 0 || (1 + steps) * pass.span_group <= chunks);
    };
    while (pass.span_group > 1 && !fits(kStepsAhead) && !(pass.span_group <= kFew && fits(1))) {
      --pass.span_group;
    }
  }

  const PlannedTensor& tensor_of(const UseDraft& use) const {
    return problem_.draft().tensors[static_cast<std::size_t>(use.tensor)];
  }

  PlanProblem& problem_;
  const PassBuilder& builder_;
  const PlanOptions& options_;
};

}  // namespace

std::vector<std::int64_t> widest_windows(const PlanProblem& problem) {
  std::vector<std::int64_t> spans;
  for (const PassDraft& pass : problem.draft().passes) {
    spans.push_back(pass.edges ? widest_window(problem, pass) : 1);
  }
  return spans;
}

void count_bytes(const PlanProblem& problem, const ResidentSet& residency, Plan& plan) {
  const std::vector<Traffic> traffic = problem.traffic(residency);
  std::size_t index = 0;
  plan.bytes_read = plan.bytes_written = 0;
  for (Section& section : plan.sections) {
    for (Pass& pass : section.passes) {
      pass.bytes_read = traffic[index].read();
      pass.bytes_written = traffic[index].written;
      pass.bytes_between_devices = traffic[index].passed_on;
      plan.bytes_read += pass.bytes_read;
      plan.bytes_written += pass.bytes_written;
      ++index;
    }
  }
}

TierPlan plan_tier(PlanProblem& problem) { return TierPlanner(problem).run(); }

std::optional<TierPlan> follow_tier(PlanProblem& problem, const TierPlan& first,
                                    const PlanProblem& its) {
  return TierPlanner(problem).follow(first, its);
}

std::int64_t moved_bytes(const TierPlan& tier) {
  return tier.plan.bytes_read + tier.plan.bytes_written;
}

}  // namespace ooc
