#include "sched/plan/liveness/access.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "sched/plan/io_chunks.h"
#include "sched/plan/ring_order.h"

namespace ooc {
namespace {

// Times that a pass needs what one of its uses reads.
void add_touches(const UseDraft& use, const PassDraft& pass, Access& access) {
  const std::int64_t groups = use.sliced ? 1 : pass.groups;
  switch (use.role) {
    case UseRole::kStreamed:
      access.sweeps += groups * pass.dst_ranges;
      access.streamed += groups * pass.dst_ranges;
      return;
    case UseRole::kResident:
      access.pins = access.pins || (pass.dst_ranges == 1 && !use.sliced);
      access.resident += groups;
      [[fallthrough]];
    case UseRole::kRows:
      access.sweeps += groups;
      access.crosses_tiles = true;
      return;
    case UseRole::kAccumulator:
      access.pins = pass.dst_ranges == 1 && !use.sliced;
      [[fallthrough]];
    case UseRole::kOutput:
      access.writes = true;
  }
}

// Blocks of a tensor that lie beside each other wherever they are, for edges reach all of them from
// one place: a span's where they are streamed, those of one of the graph's blocks.
std::int64_t blocks_at_once(const UseDraft& use, const Draft& draft, const EdgeLayout& edges) {
  const PlannedTensor& tensor = draft.tensors[static_cast<std::size_t>(use.tensor)];
  switch (use.role) {
    case UseRole::kStreamed:
      return edges.span_rows / tensor.layout.block_rows;
    case UseRole::kResident:
    case UseRole::kAccumulator:
      return blocks_in(edges, tensor);
    case UseRole::kRows:
    case UseRole::kOutput:
      return 1;
  }
  return 1;
}

bool is_output(const PassBuilder& builder, const Draft& draft, int section, int tensor) {
  const std::vector<int>& tensors = draft.value_tensors[static_cast<std::size_t>(section)];
  const std::vector<ValueId>& outputs = builder.program(section).outputs;
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](ValueId id) { return tensors[static_cast<std::size_t>(id)] == tensor; });
}

// What moves of a tensor's rows: from a block on they may be packed.
class RowBytes {
 public:
  RowBytes(const PlannedTensor& tensor, Zeros zeros, std::int64_t packed_from)
      : tensor_(tensor), packed_from_(packed_from) {
    const bool packs = tensor.packed < 1;
    if (zeros == Zeros::kLeftOut) packed_share_ = tensor.packed;
    if (zeros == Zeros::kOfPacked) other_share_ = 0, packed_share_ = packs ? 1 : 0;
  }

  std::int64_t of(std::int64_t first, std::int64_t end) const {
    const std::int64_t from = std::max(first, packed_from_);
    const std::int64_t packed = from < end ? payload_bytes(tensor_, from, end) : 0;
    const std::int64_t other = payload_bytes(tensor_, first, end) - packed;
    return other_share_ * other + packed -
           static_cast<std::int64_t>((1 - packed_share_) * static_cast<double>(packed));
  }

  // Of the I/O chunks in [first, end) that lie across the border of two of the destination ranges
  // of `own` blocks.
  std::int64_t crossing_tiles(const BlockRange& own, std::int64_t dst_range_blocks,
                              std::int64_t first, std::int64_t end) const {
    const std::int64_t io_chunk_blocks = tensor_.io_chunk_blocks;
    if (dst_range_blocks % io_chunk_blocks == 0 && own.first % io_chunk_blocks == 0) return 0;
    std::int64_t bytes = 0;
    for (std::int64_t at = own.first + dst_range_blocks; at < std::min(own.end, end);
         at += dst_range_blocks) {
      const std::int64_t io_chunk = at / tensor_.io_chunk_blocks * tensor_.io_chunk_blocks;
      if (io_chunk == at || io_chunk < first) continue;
      bytes += of(io_chunk, io_chunk + tensor_.io_chunk_blocks);
    }
    return bytes;
  }

 private:
  const PlannedTensor& tensor_;
  std::int64_t packed_from_;
  std::int64_t other_share_ = 1;
  double packed_share_ = 1;
};

}  // namespace

std::vector<Timeline> make_timelines(const PassBuilder& builder, const Draft& draft,
                                     const DeviceShare& share) {
  std::vector<Timeline> timelines(draft.tensors.size());
  const EdgeLayout& edges = builder.graph().edges;
  for (std::size_t t = 0; t < timelines.size(); ++t) {
    const BlockRange own = share.blocks_of(edges, draft.tensors[t]);
    timelines[t].tensor = static_cast<int>(t);
    timelines[t].cyclic = draft.tensors[t].input;
    timelines[t].first_block = own.first;
    timelines[t].end_block = own.end;
    timelines[t].quantum = draft.tensors[t].io_chunk_blocks;
  }
  for (int p = 0; p < draft.pass_count(); ++p) {
    const PassDraft& pass = draft.passes[static_cast<std::size_t>(p)];
    const int section = builder.stages()[static_cast<std::size_t>(pass.stage)].section;
    for (const UseDraft& use : pass.uses) {
      if (use.tensor < 0) continue;
      Timeline& timeline = timelines[static_cast<std::size_t>(use.tensor)];
      if (use.role == UseRole::kStreamed && !share.alone) {
        timeline.leaves = !timeline.cyclic;
        continue;
      }
      if (timeline.accesses.empty() || timeline.accesses.back().pass != p) {
        timeline.accesses.push_back({p});
      }
      add_touches(use, pass, timeline.accesses.back());
      timeline.quantum = std::lcm(timeline.quantum, blocks_at_once(use, draft, edges));
      if (!timeline.accesses.back().writes) continue;
      if (!is_output(builder, draft, section, use.tensor)) continue;
      timeline.always_stored = builder.options().store_outputs;
      if (timeline.always_stored) continue;
      timeline.tail_pass = draft.section_first[static_cast<std::size_t>(section) + 1] - 1;
    }
  }
  return timelines;
}

std::vector<std::vector<Access>> streamed_apart(const Draft& draft, const DeviceShare& share) {
  std::vector<std::vector<Access>> apart(draft.tensors.size());
  if (share.alone) return apart;
  for (int p = 0; p < draft.pass_count(); ++p) {
    const PassDraft& pass = draft.passes[static_cast<std::size_t>(p)];
    // The ring goes round as often as any device needs it.
    const std::int64_t dst_ranges = share.ring_loaders > 0
                                        ? pass.dst_ranges
                                        : ceil_div(share.own.count(), pass.dst_range_blocks);
    for (const UseDraft& use : pass.uses) {
      if (use.role != UseRole::kStreamed) continue;
      std::vector<Access>& accesses = apart[static_cast<std::size_t>(use.tensor)];
      if (accesses.empty() || accesses.back().pass != p) accesses.push_back({p});
      const std::int64_t sweeps = (use.sliced ? 1 : pass.groups) * dst_ranges;
      accesses.back().sweeps += sweeps;
      accesses.back().streamed += sweeps;
    }
  }
  return apart;
}

std::int64_t streamed_bytes(const PassBuilder& builder, const Draft& draft,
                            const DeviceShare& share, int pass, std::size_t tensor) {
  const PlannedTensor& planned = draft.tensors[tensor];
  const std::int64_t blocks = planned.layout.block_count();
  if (share.ring_loaders == 0) return payload_bytes(planned, 0, blocks);
  const EdgeLayout& edges = builder.graph().edges;
  const PassDraft& of = draft.passes[static_cast<std::size_t>(pass)];
  const std::int64_t item =
      ring_item_spans(edges, of.uses, draft.tensors) * edges.span_rows / planned.layout.block_rows;
  const RingShape ring{builder.options().devices, share.ring_loaders};
  std::int64_t bytes = 0;
  for (std::int64_t first = 0; first < blocks; first += item) {
    if (!ring.from_host(share.index, first / item)) continue;
    bytes += payload_bytes(planned, first, std::min(first + item, blocks));
  }
  return bytes;
}

const Timeline& timeline_of(const std::vector<Timeline>& timelines, int tensor,
                            std::int64_t block) {
  return *std::find_if(timelines.begin(), timelines.end(), [&](const Timeline& line) {
    return line.tensor == tensor && line.first_block <= block && block < line.end_block;
  });
}

std::vector<int> passes_between(const Timeline& timeline, int interval, int pass_count) {
  std::vector<int> passes;
  const int begin = timeline.accesses[static_cast<std::size_t>(interval)].pass;
  const int next = timeline.end_of(interval);
  if (next < 0) {
    for (int pass = begin + 1; pass <= timeline.tail_pass; ++pass) passes.push_back(pass);
    return passes;
  }
  const int end = timeline.accesses[static_cast<std::size_t>(next)].pass;
  for (int pass = (begin + 1) % pass_count; pass != end; pass = (pass + 1) % pass_count) {
    passes.push_back(pass);
  }
  return passes;
}

ResidentSet make_empty_residency(const std::vector<Timeline>& timelines,
                                 const std::array<std::int64_t, 2>& first_chunks) {
  ResidentSet residency;
  residency.edge_chunks = first_chunks;
  for (const Timeline& timeline : timelines) {
    const std::int64_t none = timeline.first_block;
    residency.tensors.push_back(
        {std::vector<std::int64_t>(static_cast<std::size_t>(timeline.interval_count()), none),
         std::vector<std::int64_t>(timeline.accesses.size(), none)});
    for (std::size_t i = 0; i < timeline.accesses.size(); ++i) {
      if (timeline.accesses[i].pins) residency.tensors.back().during[i] = timeline.end_block;
    }
  }
  return residency;
}

ResidentSet make_full_residency(const std::vector<Timeline>& timelines, const GraphCounts& graph) {
  const std::int64_t chunks = graph.edges.chunk_count();
  ResidentSet residency = make_empty_residency(timelines, {chunks, chunks});
  for (std::size_t t = 0; t < timelines.size(); ++t) {
    const std::int64_t end = timelines[t].end_block;
    std::fill(residency.tensors[t].keep.begin(), residency.tensors[t].keep.end(), end);
    std::fill(residency.tensors[t].during.begin(), residency.tensors[t].during.end(), end);
  }
  return residency;
}

namespace {

void add_edges(const PassBuilder& builder, const std::vector<EdgeReader>& readers,
               const Draft& draft, const ResidentSet& residency, std::vector<Traffic>& traffic) {
  for (std::size_t p = 0; p < draft.passes.size(); ++p) {
    const PassDraft& pass = draft.passes[p];
    if (!pass.edges) continue;
    const Direction direction = builder.stages()[static_cast<std::size_t>(pass.stage)].edge_file;
    const auto side = static_cast<std::size_t>(direction);
    for (const EdgeReader& reader : readers) {
      const std::int64_t first = std::max(residency.edge_chunks[side], reader.first_chunks[side]);
      traffic[p].edges +=
          pass.groups * reader.edges->sweep_bytes(direction, pass.dst_range_blocks, first);
    }
  }
}

}  // namespace

std::vector<Traffic> traffic_of(const PassBuilder& builder, const std::vector<EdgeReader>& readers,
                                const Draft& draft, const DeviceShare& share,
                                const std::vector<Timeline>& timelines,
                                const ResidentSet& residency, Zeros zeros) {
  std::vector<Traffic> traffic(draft.passes.size());
  const std::vector<std::int64_t> stored = stored_from(draft, timelines, residency);
  const std::vector<std::vector<Access>> apart = streamed_apart(draft, share);
  // Of what devices stream nothing is packed.
  for (std::size_t t = 0; t < apart.size() && zeros != Zeros::kOfPacked; ++t) {
    const PlannedTensor& tensor = draft.tensors[t];
    for (const Access& access : apart[t]) {
      const std::int64_t bytes = streamed_bytes(builder, draft, share, access.pass, t);
      Traffic& out = traffic[static_cast<std::size_t>(access.pass)];
      out.edges += access.sweeps * bytes;
      out.passed_on +=
          access.sweeps * (payload_bytes(tensor, 0, tensor.layout.block_count()) - bytes);
    }
  }
  for (std::size_t t = 0; t < timelines.size(); ++t) {
    const Timeline& timeline = timelines[t];
    if (timeline.accesses.empty()) continue;
    const ResidentPrefix& levels = residency.tensors[t];
    const PlannedTensor& tensor = draft.tensors[static_cast<std::size_t>(timeline.tensor)];
    const std::int64_t end = timeline.end_block;
    const RowBytes bytes(tensor, zeros, levels.during[0]);
    for (std::size_t i = 0; i < timeline.accesses.size(); ++i) {
      const Access& access = timeline.accesses[i];
      Traffic& out = traffic[static_cast<std::size_t>(access.pass)];
      if (access.writes) {
        const std::int64_t from = stored[static_cast<std::size_t>(timeline.tensor)];
        out.written += bytes.of(std::max(timeline.first_block, from), end);
        continue;
      }
      const std::int64_t before = i > 0 ? levels.keep[i - 1] : levels.keep.back();
      const std::int64_t during = levels.during[i];
      const PassDraft& pass = draft.passes[static_cast<std::size_t>(access.pass)];
      const std::int64_t a_block = blocks_in(builder.graph().edges, tensor);
      const std::int64_t swept = bytes.of(during, end);
      std::int64_t crossing = 0;
      for (const EdgeReader& reader : readers) {
        if (!access.crosses_tiles) break;
        const BlockRange& own = reader.edges->own();
        crossing += bytes.crossing_tiles({own.first * a_block, own.end * a_block},
                                         pass.dst_range_blocks * a_block, during, end);
      }
      const std::int64_t rows = access.sweeps - access.resident - access.streamed;
      out.resident += access.resident * swept + access.resident / access.devices * crossing;
      out.edges += access.streamed * swept;
      out.rows += rows * swept + rows / access.devices * crossing;
      std::int64_t& first = access.resident > 0   ? out.resident
                            : access.streamed > 0 ? out.edges
                                                  : out.rows;
      first += bytes.of(before, end) - swept;
    }
  }
  if (zeros != Zeros::kOfPacked) add_edges(builder, readers, draft, residency, traffic);
  return traffic;
}

}  // namespace ooc
