#include "sched/plan/liveness/memory.h"

#include <set>

#include "sched/plan/io_chunks.h"

namespace ooc {
namespace {

std::int64_t io_chunk_rows(const PlannedTensor& tensor) {
  return tensor.io_chunk_blocks * tensor.layout.block_rows;
}

}  // namespace

void RowGrain::add(const PlannedTensor& tensor) {
  const std::int64_t row = payload_bytes(tensor, 0, 1) / tensor.layout.rows_of(0);
  if (row > widest_row_) widest_io_chunk_ = 0;
  if (row >= widest_row_) widest_io_chunk_ = std::max(widest_io_chunk_, io_chunk_rows(tensor));
  widest_row_ = std::max(widest_row_, row);
}

std::int64_t RowGrain::io_chunks(const PlannedTensor& tensor, const SlotCounts& slot_counts) const {
  const std::int64_t held =
      std::max(slot_counts.times * rows_, ceil_div(slot_counts.bytes, widest_row_));
  return 1 + ceil_div(held - rows_, io_chunk_rows(tensor));
}

double RowGrain::depth(const PlannedTensor& tensor, std::int64_t io_chunks,
                       std::int64_t in_work) const {
  const auto held = static_cast<double>(rows_ + (io_chunks - 1) * io_chunk_rows(tensor));
  const double depth = held / static_cast<double>(std::max(rows_, in_work));
  const bool all = io_chunks * io_chunk_rows(tensor) >= tensor.layout.rows;
  return all ? std::max(depth, 1.0) : depth;
}

std::int64_t rows_in_work(std::int64_t workers, std::int64_t step_rows, std::int64_t group_rows) {
  return step_rows * ceil_div(workers, ceil_div(step_rows, group_rows));
}

EdgeSlots::EdgeSlots(const EdgeLayout& edges, std::int64_t dst_range_blocks, std::int64_t bytes)
    : chunk_bytes(bytes) {
  constexpr std::int64_t kEnough = 4 << 20;  // bytes
  const std::int64_t panels = ceil_div(dst_range_blocks - 1, edges.panel_blocks) + 1;
  span_chunks = std::min({panels, edges.panel_count(), ceil_div(kEnough, bytes)});
}

std::int64_t EdgeSlots::slots(const SlotCounts& slot_counts) const {
  return std::max(1 + (std::max(slot_counts.times, slot_counts.spans) - 1) * span_chunks,
                  ceil_div(slot_counts.edge_bytes, chunk_bytes));
}

double EdgeSlots::spans(std::int64_t slots) const {
  return 1 + static_cast<double>(slots - 1) / static_cast<double>(span_chunks);
}

MemoryModel::MemoryModel(const PassBuilder& builder, const EdgeTable& edges, const Draft& draft,
                         const DeviceShare& share, const std::vector<Timeline>& timelines,
                         const std::vector<InPlaceAlias>& aliases, bool works,
                         const std::array<std::int64_t, 2>& first_chunks)
    : builder_(builder),
      edges_(edges),
      draft_(draft),
      share_(share),
      timelines_(timelines),
      aliases_(aliases),
      works_(works),
      first_chunks_(first_chunks) {
  for (const PassDraft& pass : draft.passes) {
    grains_.emplace_back(builder.step_rows(draft, pass), pass.uses, draft.tensors);
  }
}

const StageShape& MemoryModel::stage(int pass) const {
  return builder_
      .stages()[static_cast<std::size_t>(draft_.passes[static_cast<std::size_t>(pass)].stage)];
}

std::int64_t MemoryModel::during(int pass, const UseDraft& use,
                                 const ResidentSet& residency) const {
  if (use.tensor < 0 || !works_ || streams_apart(use)) return 0;
  const auto at = static_cast<std::size_t>(use.tensor);
  const std::vector<Access>& accesses = timelines_[at].accesses;
  const auto found = std::find_if(accesses.begin(), accesses.end(),
                                  [&](const Access& access) { return access.pass == pass; });
  return residency.tensors[at].during[static_cast<std::size_t>(found - accesses.begin())];
}

UseMemory MemoryModel::use(int pass_index, const UseDraft& use, std::int64_t during,
                           const SlotCounts& slot_counts) const {
  const PassDraft& pass = draft_.passes[static_cast<std::size_t>(pass_index)];
  const EdgeLayout& edges = builder_.graph().edges;
  const PlannedTensor tensor =
      use.tensor >= 0 ? draft_.tensors[static_cast<std::size_t>(use.tensor)]
                      : dst_range_tensor(edges, builder_.value(stage(pass_index), use.value));
  const BlockRange own = share_.blocks_of(edges, tensor);
  if (during >= own.end || !works_) return {};
  const std::int64_t slices = use.sliced ? pass.slices_at_once : tensor.layout.slice_count();
  if (use.role == UseRole::kResident || use.role == UseRole::kAccumulator) {
    // Parts lie on I/O chunks in a pattern that repeats after as many destination ranges as a I/O
    // chunk has blocks.
    const std::int64_t a_block = blocks_in(edges, tensor);
    const std::int64_t dst_range_blocks = pass.dst_range_blocks * a_block;
    const std::int64_t begin = share_.own.first * a_block;
    const std::int64_t first_dst_range =
        std::max(during - begin, std::int64_t{0}) / dst_range_blocks;
    const std::int64_t end_dst_range =
        std::min(first_dst_range + tensor.io_chunk_blocks + 2,
                 ceil_div(share_.own.count(), pass.dst_range_blocks));
    std::int64_t bytes = 0;
    for (std::int64_t dst_range = first_dst_range; dst_range < end_dst_range; ++dst_range) {
      const std::int64_t first = std::max(begin + dst_range * dst_range_blocks, during);
      const std::int64_t end = std::min(begin + (dst_range + 1) * dst_range_blocks, own.end);
      bytes = std::max(bytes, rows_bytes(tensor, first, end, 0, slices));
    }
    return {{0, pass.dst_ranges_at_once * bytes}, 0};
  }
  std::int64_t item_blocks = tensor.io_chunk_blocks;
  if (use.role == UseRole::kStreamed) {
    item_blocks = streamed_blocks(edges, tensor);
  }
  // The steps need all slices of an I/O chunk at once.
  const bool apart = use.role != UseRole::kStreamed;
  const std::int64_t blocks = apart ? own.count() : tensor.layout.block_count();
  item_blocks = std::min(item_blocks, tensor.layout.block_count());
  const std::int64_t at_once = apart ? slices : 1;
  const std::int64_t item = rows_bytes(tensor, 0, item_blocks, 0, apart ? 1 : slices);
  const std::int64_t items = at_once * ceil_div(blocks, item_blocks);
  const std::int64_t times =
      apart ? grains_[static_cast<std::size_t>(pass_index)].io_chunks(tensor, slot_counts)
            : std::max({slot_counts.spans, ceil_div(slot_counts.bytes, item),
                        std::int64_t{share_.ring_loaders > 0 ? 2 : 1}});
  const std::int64_t slots = std::min(items, at_once * times);
  return {{0, slots * item}, slots};
}

UseMemory MemoryModel::edge_slot_memory(int pass_index, std::int64_t end_chunk,
                                        const SlotCounts& slot_counts) const {
  const PassDraft& pass = draft_.passes[static_cast<std::size_t>(pass_index)];
  if (!pass.edges || !works_) return {};
  const std::int64_t item = edges_.largest(stage(pass_index).edge_file, end_chunk);
  if (item == 0) return {};
  const EdgeSlots edge_slot_memory(builder_.graph().edges, pass.dst_range_blocks, item);
  const std::int64_t slots =
      std::min(edges_.chunk_count() - end_chunk, edge_slot_memory.slots(slot_counts));
  return {{0, slots * item}, slots};
}

std::int64_t MemoryModel::worker_scratch(int pass) const {
  if (!works_) return 0;
  return builder_.scratch_bytes(draft_.passes[static_cast<std::size_t>(pass)]);
}

std::int64_t MemoryModel::working_set(int pass_index, const ResidentSet& residency,
                                      const SlotCounts& slot_counts) const {
  const PassDraft& pass = draft_.passes[static_cast<std::size_t>(pass_index)];
  std::int64_t bytes = worker_scratch(pass_index);
  if (!works_) return bytes;
  for (const UseDraft& at : pass.uses) {
    bytes += use(pass_index, at, during(pass_index, at, residency), slot_counts).bytes;
  }
  if (!pass.edges) return bytes;
  const auto direction = static_cast<std::size_t>(stage(pass_index).edge_file);
  return bytes + edge_slot_memory(pass_index, residency.edge_chunks[direction], slot_counts).bytes;
}

std::int64_t MemoryModel::edge_range(Direction direction, std::int64_t end_chunk) const {
  const std::int64_t first = first_chunks_[static_cast<std::size_t>(direction)];
  return edges_.memory(direction, end_chunk) - edges_.memory(direction, first);
}

std::vector<std::int64_t> MemoryModel::kept(const ResidentSet& residency) const {
  const int passes = draft_.pass_count();
  std::vector<std::int64_t> bytes(draft_.passes.size(),
                                  edge_range(Direction::kIn, residency.edge_chunks[0]) +
                                      edge_range(Direction::kOut, residency.edge_chunks[1]));
  for (std::size_t t = 0; t < timelines_.size(); ++t) {
    const Timeline& timeline = timelines_[t];
    const PlannedTensor& tensor = draft_.tensors[static_cast<std::size_t>(timeline.tensor)];
    const std::int64_t slices = tensor.layout.slice_count();
    for (std::size_t i = 0; i < timeline.accesses.size(); ++i) {
      bytes[static_cast<std::size_t>(timeline.accesses[i].pass)] +=
          rows_bytes(tensor, timeline.first_block, residency.tensors[t].during[i], 0, slices);
    }
    for (int i = 0; i < timeline.interval_count(); ++i) {
      const std::int64_t keep = residency.tensors[t].keep[static_cast<std::size_t>(i)];
      if (keep == timeline.first_block) continue;
      const std::int64_t held = rows_bytes(tensor, timeline.first_block, keep, 0, slices);
      for (const int pass : passes_between(timeline, i, passes)) {
        bytes[static_cast<std::size_t>(pass)] += held;
      }
    }
  }
  for (const InPlaceAlias& alias : aliases_) {
    const PlannedTensor& tensor = draft_.tensors[static_cast<std::size_t>(alias.to)];
    const std::int64_t first = timelines_[static_cast<std::size_t>(alias.to)].first_block;
    bytes[static_cast<std::size_t>(alias.pass)] -=
        rows_bytes(tensor, first, shared_blocks(alias, residency), 0, tensor.layout.slice_count());
  }
  return bytes;
}

namespace {

// The runs of accesses between which blocks [first, end) stay.
void add_band(const Draft& draft, const Timeline& timeline, const ResidentPrefix& levels,
              std::int64_t first, std::int64_t end, std::vector<ResidentRange>& ranges) {
  const PlannedTensor& tensor = draft.tensors[static_cast<std::size_t>(timeline.tensor)];
  const int count = static_cast<int>(timeline.accesses.size());
  const auto linked = [&](int interval) {
    return interval < timeline.interval_count() &&
           levels.keep[static_cast<std::size_t>(interval)] >= end;
  };
  const auto pass_of = [&](int access) {
    return timeline.accesses[static_cast<std::size_t>(access)].pass;
  };
  const std::int64_t bytes = rows_bytes(tensor, first, end, 0, tensor.layout.slice_count());
  const auto add = [&](int first_pass, int last_pass) {
    ranges.push_back({timeline.tensor, first, end, {0, bytes}, first_pass, last_pass});
  };
  for (int i = 0; i < count; ++i) {
    if (levels.during[static_cast<std::size_t>(i)] < end) continue;
    if (i > 0 ? linked(i - 1) : timeline.cyclic && linked(count - 1)) continue;
    int last = i, steps = 0;
    while (linked(last) && timeline.end_of(last) >= 0 && steps++ < count) {
      last = timeline.end_of(last);
    }
    const bool tail = linked(last) && timeline.end_of(last) < 0;
    add(pass_of(i), tail ? timeline.tail_pass : pass_of(last));
  }
  bool around = timeline.cyclic;
  for (int i = 0; i < count; ++i) around = around && linked(i);
  if (around) add(0, draft.pass_count() - 1);
}

// By timeline: where bands end.
std::vector<std::set<std::int64_t>> borders_of(const std::vector<InPlaceAlias>& aliases,
                                               const ResidentSet& residency) {
  std::vector<std::set<std::int64_t>> borders;
  for (const ResidentPrefix& levels : residency.tensors) {
    std::set<std::int64_t>& own = borders.emplace_back(levels.keep.begin(), levels.keep.end());
    own.insert(levels.during.begin(), levels.during.end());
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const InPlaceAlias& alias : aliases) {
      std::set<std::int64_t>& from = borders[static_cast<std::size_t>(alias.from)];
      std::set<std::int64_t>& to = borders[static_cast<std::size_t>(alias.to)];
      changed = changed || from != to;
      from.insert(to.begin(), to.end());
      to = from;
    }
  }
  return borders;
}

}  // namespace

std::vector<ResidentRange> make_ranges(const Draft& draft, const std::vector<Timeline>& timelines,
                                       const std::vector<InPlaceAlias>& aliases,
                                       const ResidentSet& residency) {
  std::vector<ResidentRange> ranges;
  const std::vector<std::set<std::int64_t>> borders = borders_of(aliases, residency);
  for (std::size_t t = 0; t < timelines.size(); ++t) {
    std::int64_t first = timelines[t].first_block;
    for (const std::int64_t end : borders[t]) {
      if (end > first) add_band(draft, timelines[t], residency.tensors[t], first, end, ranges);
      first = end;
    }
  }
  return ranges;
}

}  // namespace ooc
