// Host tiers by hand, below any plan, and what must then cross the link and reach storage: counted
// from the plan alone, I/O chunk by I/O chunk.
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "sched/plan/io_chunks.h"
#include "sched/plan/plan.h"
#include "storage/io/block_file.h"
#include "tests/support/device_memory.h"

namespace ooc::test {

inline bool lives(const ResidentRange& range, int pass) {
  return range.first_pass <= range.last_pass ? range.first_pass <= pass && pass <= range.last_pass
                                             : pass >= range.first_pass || pass <= range.last_pass;
}

inline const ResidentRange* range_of(const std::vector<ResidentRange>& ranges, int tensor,
                                     std::int64_t block, int pass) {
  for (const ResidentRange& range : ranges) {
    const bool in_it = range.first_block <= block && block < range.end_block;
    if (range.tensor == tensor && in_it && lives(range, pass)) return &range;
  }
  return nullptr;
}

struct HostShape {
  double rows = 0;                  // share of what crosses the link that stays in host memory
  double edges = 0;                 // likewise, of edge chunks
  bool for_good = true;             // inputs stay; else from their first pass to their last
  bool stored_too = false;          // what is in resident ranges is also written to storage
  std::int64_t first_io_chunk = 0;  // ranges leave out so many I/O chunks
  std::int64_t slots = 4;
};

// Passes of a one-section plan that touch a tensor: first and last.
inline std::pair<int, int> passes_of(const Plan& plan, int tensor) {
  std::pair<int, int> passes{-1, -1};
  for (std::size_t i = 0; i < plan.sections[0].passes.size(); ++i) {
    for (const TensorUse& use : plan.sections[0].passes[i].uses) {
      if (use.tensor != tensor) continue;
      if (passes.first < 0) passes.first = static_cast<int>(i);
      passes.second = static_cast<int>(i);
    }
  }
  return passes;
}

class HostPlanner {
 public:
  HostPlanner(Plan plan, const GraphCounts& graph, const HostShape& shape)
      : plan_(std::move(plan)), graph_(graph), shape_(shape) {}

  // A one-section plan whose outputs stay until the end.
  Plan make() {
    const auto count = static_cast<int>(plan_.tensors.size());
    for (int tensor = 0; tensor < count; ++tensor) add_rows(tensor);
    for (const Direction direction : {Direction::kIn, Direction::kOut}) add_edges(direction);
    host_.staging_slots = shape_.slots;
    host_.staging = take(shape_.slots * slot_);
    host_.arena_bytes = end_;
    plan_.host = host_;
    return plan_;
  }

 private:
  Region take(std::int64_t bytes) {
    const Region region{end_, bytes};
    end_ += round_up(bytes, std::int64_t{4096});
    return region;
  }

  // Blocks before it never cross the link after the first epoch.
  std::int64_t lowest(int index) const {
    const PlannedTensor& tensor = plan_.tensors[static_cast<std::size_t>(index)];
    if (!tensor.input) return leaves_from(plan_, index);
    const auto passes = static_cast<int>(plan_.sections[0].passes.size());
    std::int64_t block = 0;
    for (; block < tensor.layout.block_count(); block += tensor.io_chunk_blocks) {
      for (int pass = 0; pass < passes; ++pass) {
        if (range_of(plan_.devices[0].ranges, index, block, pass) == nullptr) return block;
      }
    }
    return tensor.layout.block_count();
  }

  void add_rows(int index) {
    const PlannedTensor& tensor = plan_.tensors[static_cast<std::size_t>(index)];
    const std::int64_t blocks = tensor.layout.block_count(), io_chunk = tensor.io_chunk_blocks;
    for (std::int64_t slice = 0; slice < tensor.layout.slice_count(); ++slice) {
      slot_ = std::max(slot_, io_chunk_bytes(tensor, 0, slice));
    }
    const std::int64_t low = lowest(index);
    const auto kept = static_cast<std::int64_t>(static_cast<double>(blocks - low) * shape_.rows);
    const std::int64_t high = std::min(round_up(low + kept, io_chunk), blocks);
    const bool all_stored = tensor.input || shape_.stored_too;
    const std::int64_t first =
        all_stored ? std::min(low + shape_.first_io_chunk * io_chunk, high) : low;
    host_.stored_from_block.push_back(all_stored ? low : high);
    // In two ranges, where there are two I/O chunks.
    const std::int64_t middle = first + (high - first) / io_chunk / 2 * io_chunk;
    const auto last = static_cast<int>(plan_.sections[0].passes.size()) - 1;
    std::pair<int, int> during{0, last};
    if (!tensor.input || !shape_.for_good) during.first = passes_of(plan_, index).first;
    if (tensor.input && !shape_.for_good) during.second = passes_of(plan_, index).second;
    for (const auto& [begin, end] : {std::pair(first, middle), std::pair(middle, high)}) {
      if (begin >= end) continue;
      const std::int64_t bytes = rows_bytes(tensor, begin, end, 0, tensor.layout.slice_count());
      host_.ranges.push_back({index, begin, end, take(bytes), during.first, during.second});
    }
  }

  void add_edges(Direction direction) {
    const EdgeBytes& counts = direction == Direction::kIn ? graph_.in : graph_.out;
    const auto chunks = static_cast<std::int64_t>(counts.chunk_bytes.size());
    EdgeRange range{direction, 0, {}, 0, 0, graph_.edges.panel_count()};
    for (const EdgeRange& kept : plan_.devices[0].edge_ranges) {
      if (kept.direction == direction) range.first_chunk = kept.end_chunk;
    }
    const auto more = static_cast<double>(chunks - range.first_chunk) * shape_.edges;
    range.end_chunk = range.first_chunk + static_cast<std::int64_t>(more);
    std::int64_t bytes = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const auto size =
          static_cast<std::uint64_t>(counts.chunk_bytes[static_cast<std::size_t>(chunk)]);
      const auto aligned = static_cast<std::int64_t>(io_aligned(size));
      slot_ = std::max(slot_, aligned);
      if (range.first_chunk <= chunk && chunk < range.end_chunk) bytes += aligned;
    }
    range.memory = take(bytes);
    if (bytes > 0) host_.edge_ranges.push_back(range);
  }

  Plan plan_;
  const GraphCounts& graph_;
  HostShape shape_;
  HostTier host_;
  std::int64_t slot_ = 0, end_ = 0;
};

// Of one pass.
struct TierBytes {
  std::int64_t read = 0, written = 0, to_device = 0, from_device = 0;
};

// Walks two epochs of a one-section plan; the second one's bytes, by pass.
class TierWalk {
 public:
  TierWalk(const Plan& plan, const GraphCounts& graph) : plan_(plan), graph_(graph) {}

  std::vector<TierBytes> run() {
    const std::vector<Pass>& passes = plan_.sections[0].passes;
    for (int epoch = 0; epoch < 2; ++epoch) {
      counted_.assign(passes.size(), {});
      for (pass_ = 0; pass_ < static_cast<int>(passes.size()); ++pass_) {
        begin();
        walk(passes[static_cast<std::size_t>(pass_)]);
      }
    }
    return counted_;
  }

 private:
  using IoChunk = std::pair<std::int64_t, std::int64_t>;  // and slice
  using There = std::set<std::pair<const ResidentRange*, IoChunk>>;

  void begin() {
    for (There* there : {&on_device_, &on_host_}) {
      std::erase_if(*there, [&](const auto& entry) {
        const ResidentRange& range = *entry.first;
        const bool made = !plan_.tensors[static_cast<std::size_t>(range.tensor)].input;
        return !lives(range, pass_) || (made && range.first_pass == pass_);
      });
    }
  }

  void touch(bool write, int index, std::int64_t io_chunk, std::int64_t slice) {
    const PlannedTensor& tensor = plan_.tensors[static_cast<std::size_t>(index)];
    const std::int64_t block = io_chunk * tensor.io_chunk_blocks,
                       bytes = io_chunk_payload(tensor, io_chunk, slice);
    TierBytes& counted = counted_[static_cast<std::size_t>(pass_)];
    const ResidentRange* device = range_of(plan_.devices[0].ranges, index, block, pass_);
    const ResidentRange* host = range_of(plan_.host->ranges, index, block, pass_);
    const bool new_here =
        device == nullptr || on_device_.insert({device, {io_chunk, slice}}).second;
    if (write) {
      if (block < leaves_from(plan_, index)) return;
      counted.from_device += bytes;
      if (host != nullptr) on_host_.insert({host, {io_chunk, slice}});
      const auto from = plan_.host->stored_from_block[static_cast<std::size_t>(index)];
      if (block >= from) counted.written += bytes;
    } else if (new_here) {
      counted.to_device += bytes;
      if (host == nullptr || on_host_.insert({host, {io_chunk, slice}}).second)
        counted.read += bytes;
    }
  }

  void walk(const Pass& pass) {
    const std::int64_t blocks = graph_.edges.block_count();
    const bool edges = pass.kind == PassKind::kPropagate;
    const std::int64_t slices = edges ? ceil_div(pass.slice_local_cols, kSliceWidth) : 1;
    const std::int64_t step = edges && pass.slices_at_once > 0 ? pass.slices_at_once : slices;
    for (std::int64_t slice = 0; slice < slices; slice += step) {
      const std::int64_t dst_range = edges ? pass.dst_range_blocks : blocks;
      for (std::int64_t first = 0; first < blocks; first += dst_range) {
        const std::int64_t end = std::min(first + dst_range, blocks);
        if (edges) walk_edges(pass, first, end);
        for (const TensorUse& use : pass.uses) {
          if (use.tensor < 0) continue;
          const PlannedTensor& tensor = plan_.tensors[static_cast<std::size_t>(use.tensor)];
          const bool sliced = edges && use.role != UseRole::kRows && use.role != UseRole::kOutput &&
                              tensor.layout.cols == pass.slice_local_cols;
          const bool all = use.role == UseRole::kStreamed;
          const bool write = use.role == UseRole::kOutput || use.role == UseRole::kAccumulator;
          for (std::int64_t s = sliced ? slice : 0;
               s < (sliced ? std::min(slice + step, slices) : tensor.layout.slice_count()); ++s) {
            const std::int64_t block_rows = graph_.edges.block_rows;
            const std::int64_t rows = tensor.io_chunk_blocks * tensor.layout.block_rows;
            const std::int64_t end_row =
                std::min((all ? blocks : end) * block_rows, graph_.edges.vertices);
            for (std::int64_t io_chunk = (all ? 0 : first * block_rows) / rows;
                 io_chunk * rows < end_row; ++io_chunk) {
              touch(write, use.tensor, io_chunk, s);
            }
          }
        }
      }
    }
  }

  static const EdgeRange* kept(const std::vector<EdgeRange>& ranges, Direction direction,
                               std::int64_t chunk) {
    for (const EdgeRange& range : ranges) {
      const bool in_it = range.first_chunk <= chunk && chunk < range.end_chunk;
      if (range.direction == direction && in_it) return &range;
    }
    return nullptr;
  }

  void walk_edges(const Pass& pass, std::int64_t first, std::int64_t end) {
    const Direction direction = pass.propagation.direction;
    const EdgeBytes& counts = direction == Direction::kIn ? graph_.in : graph_.out;
    const std::int64_t panel_blocks = graph_.edges.panel_blocks;
    TierBytes& counted = counted_[static_cast<std::size_t>(pass_)];
    for (std::int64_t chunk = 0; chunk < graph_.edges.chunk_count(); ++chunk) {
      const std::int64_t begin = chunk % graph_.edges.panel_count() * panel_blocks;
      if (begin >= end || begin + panel_blocks <= first) continue;
      if (kept(plan_.devices[0].edge_ranges, direction, chunk) != nullptr) continue;
      const std::int64_t bytes = counts.chunk_bytes[static_cast<std::size_t>(chunk)];
      counted.to_device += bytes;
      if (kept(plan_.host->edge_ranges, direction, chunk) == nullptr) counted.read += bytes;
    }
  }

  const Plan& plan_;
  const GraphCounts& graph_;
  int pass_ = 0;
  There on_device_, on_host_;
  std::vector<TierBytes> counted_;
};

}  // namespace ooc::test
