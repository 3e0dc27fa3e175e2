// Host tiers by hand, below any plan, and what must then cross the link and reach storage: counted
// from the plan alone, unit by unit.
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "sched/plan/plan.h"
#include "storage/io/block_file.h"

namespace ooc::test {

inline bool lives(const Piece& piece, int pass) {
  return piece.first_pass <= piece.last_pass ? piece.first_pass <= pass && pass <= piece.last_pass
                                             : pass >= piece.first_pass || pass <= piece.last_pass;
}

inline const Piece* piece_of(const std::vector<Piece>& pieces, int tensor, std::int64_t block,
                             int pass) {
  for (const Piece& piece : pieces) {
    const bool in_it = piece.first_block <= block && block < piece.end_block;
    if (piece.tensor == tensor && in_it && lives(piece, pass)) return &piece;
  }
  return nullptr;
}

struct HostShape {
  double rows = 0;              // share of what crosses the link that stays in host memory
  double edges = 0;             // likewise, of edge chunks
  bool for_good = true;         // inputs stay; else from their first pass to their last
  bool stored_too = false;      // what is in pieces is also written to storage
  std::int64_t first_unit = 0;  // pieces leave out so many units
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
    if (!tensor.input) return tensor.stored_from_block;
    const auto passes = static_cast<int>(plan_.sections[0].passes.size());
    std::int64_t block = 0;
    for (; block < tensor.layout.block_count(); block += tensor.unit_blocks) {
      for (int pass = 0; pass < passes; ++pass) {
        if (piece_of(plan_.pieces, index, block, pass) == nullptr) return block;
      }
    }
    return tensor.layout.block_count();
  }

  void add_rows(int index) {
    const PlannedTensor& tensor = plan_.tensors[static_cast<std::size_t>(index)];
    const std::int64_t blocks = tensor.layout.block_count(), unit = tensor.unit_blocks;
    for (std::int64_t slice = 0; slice < tensor.layout.slice_count(); ++slice) {
      slot_ = std::max(slot_, unit_bytes(tensor, 0, slice));
    }
    const std::int64_t low = lowest(index);
    const auto kept = static_cast<std::int64_t>(static_cast<double>(blocks - low) * shape_.rows);
    const std::int64_t high = std::min(round_up(low + kept, unit), blocks);
    const bool all_stored = tensor.input || shape_.stored_too;
    const std::int64_t first = all_stored ? std::min(low + shape_.first_unit * unit, high) : low;
    host_.stored_from_block.push_back(all_stored ? low : high);
    // In two pieces, where there are two units.
    const std::int64_t middle = first + (high - first) / unit / 2 * unit;
    const auto last = static_cast<int>(plan_.sections[0].passes.size()) - 1;
    std::pair<int, int> during{0, last};
    if (!tensor.input || !shape_.for_good) during.first = passes_of(plan_, index).first;
    if (tensor.input && !shape_.for_good) during.second = passes_of(plan_, index).second;
    for (const auto& [begin, end] : {std::pair(first, middle), std::pair(middle, high)}) {
      if (begin >= end) continue;
      const std::int64_t bytes = rows_bytes(tensor, begin, end, 0, tensor.layout.slice_count());
      host_.pieces.push_back({index, begin, end, take(bytes), during.first, during.second});
    }
  }

  void add_edges(Direction direction) {
    const EdgeBytes& counts = direction == Direction::kIn ? graph_.in : graph_.out;
    const auto chunks = static_cast<std::int64_t>(counts.chunk_bytes.size());
    EdgePiece piece{direction, 0, {}, 0};
    for (const EdgePiece& kept : plan_.edge_pieces) {
      if (kept.direction == direction) piece.first_chunk = kept.end_chunk;
    }
    const auto more = static_cast<double>(chunks - piece.first_chunk) * shape_.edges;
    piece.end_chunk = piece.first_chunk + static_cast<std::int64_t>(more);
    std::int64_t bytes = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const auto size =
          static_cast<std::uint64_t>(counts.chunk_bytes[static_cast<std::size_t>(chunk)]);
      const auto aligned = static_cast<std::int64_t>(io_aligned(size));
      slot_ = std::max(slot_, aligned);
      if (piece.first_chunk <= chunk && chunk < piece.end_chunk) bytes += aligned;
    }
    piece.memory = take(bytes);
    if (bytes > 0) host_.edge_pieces.push_back(piece);
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
  using Unit = std::pair<std::int64_t, std::int64_t>;  // and slice
  using There = std::set<std::pair<const Piece*, Unit>>;

  void begin() {
    for (There* there : {&on_device_, &on_host_}) {
      std::erase_if(*there, [&](const auto& entry) {
        const Piece& piece = *entry.first;
        const bool made = !plan_.tensors[static_cast<std::size_t>(piece.tensor)].input;
        return !lives(piece, pass_) || (made && piece.first_pass == pass_);
      });
    }
  }

  void touch(bool write, int index, std::int64_t unit, std::int64_t slice) {
    const PlannedTensor& tensor = plan_.tensors[static_cast<std::size_t>(index)];
    const std::int64_t block = unit * tensor.unit_blocks, bytes = unit_payload(tensor, unit, slice);
    TierBytes& counted = counted_[static_cast<std::size_t>(pass_)];
    const Piece* device = piece_of(plan_.pieces, index, block, pass_);
    const Piece* host = piece_of(plan_.host->pieces, index, block, pass_);
    const bool new_here = device == nullptr || on_device_.insert({device, {unit, slice}}).second;
    if (write) {
      if (block < tensor.stored_from_block) return;
      counted.from_device += bytes;
      if (host != nullptr) on_host_.insert({host, {unit, slice}});
      const auto from = plan_.host->stored_from_block[static_cast<std::size_t>(index)];
      if (block >= from) counted.written += bytes;
    } else if (new_here) {
      counted.to_device += bytes;
      if (host == nullptr || on_host_.insert({host, {unit, slice}}).second) counted.read += bytes;
    }
  }

  void walk(const Pass& pass) {
    const std::int64_t blocks = graph_.edges.block_count();
    const bool edges = pass.kind == PassKind::kPropagate;
    const std::int64_t slices = edges ? ceil_div(pass.slice_local_cols, kSliceWidth) : 1;
    const std::int64_t step = edges && pass.slices_at_once > 0 ? pass.slices_at_once : slices;
    for (std::int64_t slice = 0; slice < slices; slice += step) {
      const std::int64_t part = edges ? pass.part_blocks : blocks;
      for (std::int64_t first = 0; first < blocks; first += part) {
        const std::int64_t end = std::min(first + part, blocks);
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
            const std::int64_t rows = tensor.unit_blocks * tensor.layout.block_rows;
            const std::int64_t end_row =
                std::min((all ? blocks : end) * block_rows, graph_.edges.vertices);
            for (std::int64_t unit = (all ? 0 : first * block_rows) / rows; unit * rows < end_row;
                 ++unit) {
              touch(write, use.tensor, unit, s);
            }
          }
        }
      }
    }
  }

  static const EdgePiece* kept(const std::vector<EdgePiece>& pieces, Direction direction,
                               std::int64_t chunk) {
    for (const EdgePiece& piece : pieces) {
      const bool in_it = piece.first_chunk <= chunk && chunk < piece.end_chunk;
      if (piece.direction == direction && in_it) return &piece;
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
      if (kept(plan_.edge_pieces, direction, chunk) != nullptr) continue;
      const std::int64_t bytes = counts.chunk_bytes[static_cast<std::size_t>(chunk)];
      counted.to_device += bytes;
      if (kept(plan_.host->edge_pieces, direction, chunk) == nullptr) counted.read += bytes;
    }
  }

  const Plan& plan_;
  const GraphCounts& graph_;
  int pass_ = 0;
  There on_device_, on_host_;
  std::vector<TierBytes> counted_;
};

}  // namespace ooc::test
