#include "tests/support/plan_checks.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "sched/plan/io_chunks.h"
#include "tests/support/device_memory.h"
#include "tests/support/plan_parts.h"
#include "tests/support/shared_places.h"

namespace ooc::test {
namespace {

struct Located {
  const Pass* pass;
  int index;
};

std::vector<Located> passes_of(const Plan& plan) {
  std::vector<Located> passes;
  for (const Section& section : plan.sections) {
    for (const Pass& pass : section.passes) {
      passes.push_back({&pass, static_cast<int>(passes.size())});
    }
  }
  return passes;
}

bool is_write(UseRole role) { return role == UseRole::kAccumulator || role == UseRole::kOutput; }

// Which I/O chunks of ranges are there, pass by pass.
class Contents {
 public:
  Contents(const Plan& plan, const std::vector<ResidentRange>& ranges)
      : plan_(plan), ranges_(ranges), loaded_(ranges.size()) {}

  void begin_pass(int pass) {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const bool made = !tensor(ranges_[i]).input && ranges_[i].first_pass == pass;
      if (!is_alive(ranges_[i], pass) || made) loaded_[i].clear();
    }
  }

  // The range that holds an I/O chunk in this pass; -1: none.
  int find(int index, std::int64_t io_chunk, int pass) const {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const ResidentRange& range = ranges_[i];
      if (range.tensor != index || !is_alive(range, pass)) continue;
      const std::int64_t first = io_chunk * tensor(range).io_chunk_blocks;
      if (first >= range.first_block && first < range.end_block) return static_cast<int>(i);
    }
    return -1;
  }

  // Whether it was not there already.
  bool put(int range, std::int64_t io_chunk, std::int64_t slice) {
    return loaded_[static_cast<std::size_t>(range)].insert({io_chunk, slice}).second;
  }

 private:
  const PlannedTensor& tensor(const ResidentRange& range) const {
    return plan_.tensors[static_cast<std::size_t>(range.tensor)];
  }

  const Plan& plan_;
  const std::vector<ResidentRange>& ranges_;
  std::vector<std::set<std::pair<std::int64_t, std::int64_t>>> loaded_;  // I/O chunks by range
};

const std::vector<ResidentRange> kNoRanges;

// Walks two epochs of a plan I/O chunk by I/O chunk.
class Walker {
 public:
  Walker(const Plan& plan, const GraphCounts& graph)
      : plan_(plan),
        graph_(graph),
        passes_(passes_of(plan)),
        arena_(plan, plan.devices[0].ranges),
        host_(plan, plan.host ? plan.host->ranges : kNoRanges) {}

  Counted run() {
    for (int epoch = 0; epoch < 2; ++epoch) {
      const std::vector<std::int64_t> none(passes_.size());
      counted_ = {none, none, none, none};
      for (const Located& at : passes_) walk(*at.pass, at.index);
    }
    return counted_;
  }

 private:
  const PlannedTensor& tensor(int index) const {
    return plan_.tensors[static_cast<std::size_t>(index)];
  }

  // Blocks from here on are in storage.
  std::int64_t stored_from(int index) const {
    const auto at = static_cast<std::size_t>(index);
    return plan_.host ? plan_.host->stored_from_block[at] : plan_.devices[0].stored_from_block[at];
  }

  void read(int index, std::int64_t io_chunk, std::int64_t slice, int pass) {
    const PlannedTensor& from = tensor(index);
    const auto at = static_cast<std::size_t>(pass);
    const int range = arena_.find(index, io_chunk, pass);
    if (range >= 0 && !arena_.put(range, io_chunk, slice)) return;
    INFO(from.name << " unit " << io_chunk << " is read in pass " << pass);
    if (plan_.host) {
      counted_.to_device[at] += io_chunk_payload(from, io_chunk, slice);
      const int held = host_.find(index, io_chunk, pass);
      if (held >= 0 && !host_.put(held, io_chunk, slice)) return;
    }
    if (!from.input) REQUIRE(io_chunk * from.io_chunk_blocks >= stored_from(index));
    counted_.read[at] += io_chunk_payload(from, io_chunk, slice);
  }

  void write(int index, std::int64_t io_chunk, std::int64_t slice, int pass) {
    const PlannedTensor& to = tensor(index);
    const auto at = static_cast<std::size_t>(pass);
    int range = arena_.find(index, io_chunk, pass);
    if (range >= 0) arena_.put(range, io_chunk, slice);
    INFO(to.name << " unit " << io_chunk << " is made in pass " << pass);
    const std::int64_t block = io_chunk * to.io_chunk_blocks;
    const bool leaves =
        block >= plan_.devices[0].stored_from_block[static_cast<std::size_t>(index)];
    if (leaves && plan_.host) {
      counted_.from_device[at] += io_chunk_payload(to, io_chunk, slice);
      range = host_.find(index, io_chunk, pass);
      if (range >= 0) host_.put(range, io_chunk, slice);
    }
    if (leaves && block >= stored_from(index)) {
      counted_.written[at] += io_chunk_payload(to, io_chunk, slice);
    } else {
      REQUIRE(range >= 0);  // neither kept nor stored
    }
  }

  void touch(const TensorUse& use, std::int64_t first, std::int64_t end,
             std::pair<std::int64_t, std::int64_t> slices, int pass) {
    if (use.tensor < 0) return;
    const PlannedTensor& of = tensor(use.tensor);
    const std::int64_t block_rows = graph_.edges.block_rows;
    const std::int64_t rows = of.io_chunk_blocks * of.layout.block_rows;
    const std::int64_t end_row = std::min(end * block_rows, graph_.edges.vertices);
    for (std::int64_t s = slices.first; s < slices.second; ++s) {
      for (std::int64_t u = first * block_rows / rows; u * rows < end_row; ++u) {
        is_write(use.role) ? write(use.tensor, u, s, pass) : read(use.tensor, u, s, pass);
      }
    }
  }

  void walk(const Pass& pass, int index) {
    arena_.begin_pass(index);
    host_.begin_pass(index);
    const std::int64_t blocks = graph_.edges.block_count();
    const bool edges = pass.kind == PassKind::kPropagate;
    const std::int64_t all = edges ? ceil_div(pass.slice_local_cols, kSliceWidth) : 1;
    const std::int64_t step = edges && all > 0 ? pass.slices_at_once : 1;
    for (std::int64_t s = 0; s < std::max<std::int64_t>(all, 1); s += step) {
      const auto slices = [&](int t) {
        const std::int64_t count = tensor(t).layout.slice_count();
        if (!edges || all <= step || tensor(t).layout.cols != pass.slice_local_cols) {
          return std::pair<std::int64_t, std::int64_t>{0, count};
        }
        return std::pair<std::int64_t, std::int64_t>{s, std::min(s + step, count)};
      };
      for (std::int64_t first = 0; first < blocks; first += pass.dst_range_blocks) {
        const std::int64_t end = std::min(first + pass.dst_range_blocks, blocks);
        if (edges) walk_edges(pass, index, first, end);
        for (const TensorUse& use : pass.uses) {
          if (use.tensor < 0) continue;
          if (use.role == UseRole::kStreamed) touch(use, 0, blocks, slices(use.tensor), index);
        }
        for (const TensorUse& use : pass.uses) {
          if (use.tensor < 0 || use.role == UseRole::kStreamed) continue;
          touch(use, first, end, slices(use.tensor), index);
        }
      }
    }
  }

  static std::int64_t kept_chunks(const std::vector<EdgeRange>& ranges, Direction direction,
                                  std::int64_t first) {
    for (const EdgeRange& range : ranges) {
      if (range.direction != direction) continue;
      REQUIRE(range.first_chunk == first);
      return range.end_chunk;
    }
    return first;
  }

  void walk_edges(const Pass& pass, int index, std::int64_t first, std::int64_t end) {
    const Direction direction = graph_.symmetric ? Direction::kIn : pass.propagation.direction;
    const EdgeBytes& counts = direction == Direction::kIn ? graph_.in : graph_.out;
    const auto at = static_cast<std::size_t>(index);
    const std::int64_t kept = kept_chunks(plan_.devices[0].edge_ranges, direction, 0);
    std::int64_t in_host = kept;
    if (plan_.host) in_host = kept_chunks(plan_.host->edge_ranges, direction, kept);
    const std::int64_t chunks = graph_.edges.chunk_count();
    for (std::int64_t chunk = kept; chunk < chunks; ++chunk) {
      const std::int64_t panel = chunk % graph_.edges.panel_count();
      const std::int64_t begin = panel * graph_.edges.panel_blocks;
      if (begin >= end || begin + graph_.edges.panel_blocks <= first) continue;
      const std::int64_t bytes = counts.chunk_bytes[static_cast<std::size_t>(chunk)];
      if (plan_.host) counted_.to_device[at] += bytes;
      if (chunk >= in_host) counted_.read[at] += bytes;
    }
  }

  const Plan& plan_;
  const GraphCounts& graph_;
  std::vector<Located> passes_;
  Contents arena_, host_;
  Counted counted_;
};

struct Held {
  Region memory;
  std::string name;
};

void check_regions(std::vector<Held> held, std::int64_t arena_bytes) {
  std::sort(held.begin(), held.end(),
            [](const Held& a, const Held& b) { return a.memory.offset < b.memory.offset; });
  std::int64_t end = 0;
  for (const Held& at : held) {
    if (at.memory.bytes == 0) continue;
    INFO(at.name);
    REQUIRE(at.memory.offset % 4096 == 0);
    REQUIRE(at.memory.offset >= end);
    end = at.memory.offset + at.memory.bytes;
  }
  REQUIRE(end <= arena_bytes);
}

std::vector<Held> held_in(const Plan& plan, const std::vector<ResidentRange>& ranges,
                          const std::vector<EdgeRange>& edge_ranges, int pass,
                          const std::set<const ResidentRange*>& left_out = {}) {
  std::vector<Held> held;
  for (const ResidentRange& range : ranges) {
    if (!is_alive(range, pass) || left_out.contains(&range)) continue;
    held.push_back({range.memory, plan.tensors[static_cast<std::size_t>(range.tensor)].name});
  }
  for (const EdgeRange& range : edge_ranges) held.push_back({range.memory, "edges"});
  return held;
}

void check_regions(const Plan& plan, const PlanOptions& options, int index, const Pass& pass) {
  INFO("pass " << index << " " << pass.name);
  std::vector<Held> held = held_in(plan, plan.devices[0].ranges, plan.devices[0].edge_ranges, index,
                                   in_place_of_others(plan, index, pass));
  for (const TensorUse& use : pass.uses) held.push_back({memory_of(plan, pass, use), "use"});
  held.push_back({memory_of(plan, pass).edges, "edge ring"});
  held.push_back({memory_of(plan, pass).worker_scratch, "scratch"});
  check_regions(std::move(held), plan.devices[0].arena_bytes);
  REQUIRE(memory_of(plan, pass).worker_scratch.bytes ==
          options.workers *
              round_up(std::max(pass.scratch_bytes, pass.edge_scratch_bytes), std::int64_t{4096}));
  if (!plan.host) return;
  held = held_in(plan, plan.host->ranges, plan.host->edge_ranges, index);
  held.push_back({plan.host->staging, "staging"});
  check_regions(std::move(held), plan.host->arena_bytes);
}

// Edge work finds all rows of one of the graph's blocks from one place.
void check_edge_ranges(const Plan& plan, const GraphCounts& graph) {
  for (const Located& at : passes_of(plan)) {
    for (const TensorUse& use : at.pass->uses) {
      if (use.tensor < 0 || use.role == UseRole::kRows || use.role == UseRole::kOutput) continue;
      for (const ResidentRange& range : plan.devices[0].ranges) {
        if (range.tensor != use.tensor || !is_alive(range, at.index)) continue;
        const TensorLayout& layout = plan.tensors[static_cast<std::size_t>(use.tensor)].layout;
        const std::int64_t rows =
            use.role == UseRole::kStreamed ? graph.edges.span_rows : graph.edges.block_rows;
        INFO(plan.tensors[static_cast<std::size_t>(use.tensor)].name << " in pass " << at.index);
        REQUIRE(range.first_block * layout.block_rows % rows == 0);
        REQUIRE((range.end_block == layout.block_count() ||
                 range.end_block * layout.block_rows % rows == 0));
      }
    }
  }
}

// Slots hold a window of spans, wherever it begins in an item, and two of a panel's chunks.
void check_windows(const Plan& plan, const GraphCounts& graph, const Pass& pass) {
  if (pass.kind != PassKind::kPropagate) return;
  REQUIRE((pass.group_blocks >= 1 && pass.group_blocks <= graph.edges.panel_blocks));
  if (pass.span_group == 1) return;
  REQUIRE((memory_of(plan, pass).edges.slots == 0 ||
           memory_of(plan, pass).edges.slots >= 2 * pass.span_group));
  for (const TensorUse& use : pass.uses) {
    if (use.role != UseRole::kStreamed || memory_of(plan, pass, use).slots == 0) continue;
    const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(use.tensor)];
    const std::int64_t item_spans =
        streamed_blocks(graph.edges, tensor) * tensor.layout.block_rows / graph.edges.span_rows;
    REQUIRE(memory_of(plan, pass, use).slots >= 1 + ceil_div(pass.span_group - 1, item_spans));
  }
}

void check_ranges(const Plan& plan, const std::vector<ResidentRange>& ranges, int passes) {
  for (const ResidentRange& range : ranges) {
    const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(range.tensor)];
    const std::int64_t blocks = tensor.layout.block_count();
    INFO(tensor.name << " " << range.first_block << " to " << range.end_block);
    REQUIRE(range.first_block < range.end_block);
    REQUIRE(range.first_block % tensor.io_chunk_blocks == 0);
    REQUIRE((range.end_block == blocks || range.end_block % tensor.io_chunk_blocks == 0));
    REQUIRE(range.memory.bytes ==
            rows_bytes(tensor, range.first_block, range.end_block, 0, tensor.layout.slice_count()));
    for (const ResidentRange& other : ranges) {
      if (&other == &range || other.tensor != range.tensor) continue;
      for (int pass = 0; pass < passes; ++pass) {
        if (!is_alive(range, pass) || !is_alive(other, pass)) continue;
        REQUIRE((range.end_block <= other.first_block || other.end_block <= range.first_block));
      }
    }
  }
}

// Slots take all that crosses the link, in the first epoch too.
void check_staging(const Plan& plan, const GraphCounts& graph) {
  const HostTier& host = *plan.host;
  REQUIRE(host.staging_slots >= 1);
  REQUIRE(host.staging_slots <= 16);
  REQUIRE(host.staging.bytes % host.staging_slots == 0);
  const std::int64_t slot = host.staging.bytes / host.staging_slots;
  REQUIRE(slot % 4096 == 0);
  for (const PlannedTensor& tensor : plan.tensors) {
    const auto index = static_cast<std::size_t>(&tensor - plan.tensors.data());
    const std::int64_t leaves_from = plan.devices[0].stored_from_block[index];
    if (!tensor.input && leaves_from == tensor.layout.block_count()) continue;
    for (std::int64_t s = 0; s < tensor.layout.slice_count(); ++s) {
      REQUIRE(slot >= io_chunk_bytes(tensor, 0, s));
    }
  }
  for (const Located& at : passes_of(plan)) {
    if (at.pass->kind != PassKind::kPropagate) continue;
    const bool in = graph.symmetric || at.pass->propagation.direction == Direction::kIn;
    for (const std::int64_t bytes : (in ? graph.in : graph.out).chunk_bytes) {
      REQUIRE(slot >= bytes);
    }
  }
}

void check_budgets(const Plan& plan, const PlanOptions& options) {
  const std::int64_t working = plan.devices[0].arena_bytes + plan.devices[0].reduction_bytes;
  const std::int64_t limit = options.device ? options.device_memory_bytes : options.memory_bytes;
  if (limit > 0) CHECK(working <= limit);
  if (plan.host && options.memory_bytes > 0) CHECK(plan.host->arena_bytes <= options.memory_bytes);
}

}  // namespace

Counted count_bytes(const Plan& plan, const GraphCounts& graph) {
  return Walker(plan, graph).run();
}

void check_plan(const std::vector<const Program*>& programs, const Plan& plan,
                const GraphCounts& graph, const PlanOptions& options) {
  REQUIRE(plan.sections.size() == programs.size());
  REQUIRE(plan.host.has_value() == options.device);
  const std::vector<Located> passes = passes_of(plan);
  for (const Located& at : passes) {
    check_regions(plan, options, at.index, *at.pass);
    check_windows(plan, graph, *at.pass);
  }
  int index = 0;
  for (std::size_t section = 0; section < programs.size(); ++section) {
    for (const Pass& pass : plan.sections[section].passes) {
      check_dst_ranges(*programs[section], plan, graph.edges, index++, pass);
    }
  }
  check_ranges(plan, plan.devices[0].ranges, static_cast<int>(passes.size()));
  check_edge_ranges(plan, graph);
  if (plan.host) check_ranges(plan, plan.host->ranges, static_cast<int>(passes.size()));
  if (plan.host) check_staging(plan, graph);
  const Counted counted = count_bytes(plan, graph);
  std::int64_t link = 0, storage = 0;
  for (const Located& at : passes) {
    INFO("pass " << at.index << " " << at.pass->name);
    const auto pass = static_cast<std::size_t>(at.index);
    CHECK(at.pass->bytes_read == counted.read[pass]);
    CHECK(at.pass->bytes_written == counted.written[pass]);
    CHECK(at.pass->bytes_to_device == counted.to_device[pass]);
    CHECK(at.pass->bytes_from_device == counted.from_device[pass]);
    storage += counted.read[pass] + counted.written[pass];
    link += counted.to_device[pass] + counted.from_device[pass];
  }
  CHECK(plan.bytes_read + plan.bytes_written == storage);
  CHECK(plan.bytes_to_device + plan.bytes_from_device == link);
  CHECK(plan.bound_bytes <= storage);
  CHECK(plan.bound_link_bytes <= link);
  CHECK(plan.bound_seconds <= plan.seconds);
  check_budgets(plan, options);
}

}  // namespace ooc::test
