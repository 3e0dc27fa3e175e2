#include "sched/plan/residency/lru.h"

#include <algorithm>
#include <list>

#include "sched/plan/io_chunks.h"

namespace ooc {
namespace {

constexpr std::int64_t kMaxDstRanges = 256;  // that a tensor is simulated in

// Parts of tensors and of edge files in the order of their last use.
class Cache {
 public:
  Cache(std::vector<std::int64_t> dst_range_bytes, std::int64_t dst_ranges, std::int64_t capacity)
      : dst_range_bytes_(std::move(dst_range_bytes)),
        dst_ranges_(dst_ranges),
        capacity_(capacity),
        places_(dst_range_bytes_.size() * static_cast<std::size_t>(dst_ranges), order_.end()) {}

  bool pins(int file, std::int64_t dst_range) const {
    return places_[at(file, dst_range)] != order_.end();
  }

  // Whether it was there.
  bool touch(int file, std::int64_t dst_range) {
    auto& place = places_[at(file, dst_range)];
    const bool hit = place != order_.end();
    if (hit) order_.erase(place);
    if (!hit) used_ += dst_range_bytes_[static_cast<std::size_t>(file)];
    order_.push_front({file, dst_range});
    place = order_.begin();
    while (used_ > capacity_) drop(order_.back());
    return hit;
  }

  void drop_file(int file) {
    for (std::int64_t dst_range = 0; dst_range < dst_ranges_; ++dst_range) {
      if (pins(file, dst_range)) drop({file, dst_range});
    }
  }

 private:
  using Entry = std::pair<int, std::int64_t>;

  std::size_t at(int file, std::int64_t dst_range) const {
    return static_cast<std::size_t>(file * dst_ranges_ + dst_range);
  }

  void drop(Entry entry) {
    auto& place = places_[at(entry.first, entry.second)];
    order_.erase(place);
    place = order_.end();
    used_ -= dst_range_bytes_[static_cast<std::size_t>(entry.first)];
  }

  std::vector<std::int64_t> dst_range_bytes_;  // by file
  std::int64_t dst_ranges_, capacity_, used_ = 0;
  std::list<Entry> order_;  // the last used first
  std::vector<std::list<Entry>::iterator> places_;
};

class LruWalk {
 public:
  explicit LruWalk(const PlanProblem& problem)
      : problem_(problem),
        blocks_(problem.builder().graph().edges.block_count()),
        dst_ranges_(std::min(blocks_, kMaxDstRanges)),
        cache_(dst_range_sizes(), dst_ranges_, capacity()),
        edges_(static_cast<int>(problem.timelines().size())) {
    for (const Timeline& line : problem.timelines()) {
      counts_.push_back(0);
      for (std::int64_t dst_range = 0; dst_range < dst_ranges_; ++dst_range)
        counts_.back() += has(line, dst_range) ? 1 : 0;
    }
  }

  ResidentSet run() {
    constexpr int kEpochs = 3;  // until it repeats
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      hits_.clear();
      for (const Timeline& line : problem_.timelines()) {
        hits_.emplace_back(line.accesses.size(), Hits{});
      }
      tails_.assign(hits_.size(), 0);
      edge_hits_ = {dst_ranges_, dst_ranges_};
      for (int pass = 0; pass < problem_.draft().pass_count(); ++pass) walk(pass);
    }
    return residency();
  }

 private:
  struct Hits {
    std::int64_t first = 0,
                 later = 0;   // destination ranges found in the first sweep, and in all others
    std::int64_t sweeps = 0;  // so far
  };

  // Where a destination range begins, in the tensor's blocks.
  std::int64_t first_block(const Timeline& line, std::int64_t dst_range) const {
    const EdgeLayout& edges = problem_.builder().graph().edges;
    const PlannedTensor& tensor = tensor_of(problem_, line);
    if (!tensor.kept.all()) return dst_range * tensor.layout.block_count() / dst_ranges_;
    return dst_range * blocks_ / dst_ranges_ * blocks_in(edges, tensor);
  }

  bool has(const Timeline& line, std::int64_t dst_range) const {
    const std::int64_t block = first_block(line, dst_range);
    return line.first_block <= block && block < line.end_block;
  }

  std::vector<std::int64_t> dst_range_sizes() const {
    std::vector<std::int64_t> sizes;
    for (const Timeline& line : problem_.timelines()) {
      const PlannedTensor& tensor = tensor_of(problem_, line);
      const TensorLayout& layout = tensor.layout;
      const std::int64_t bytes =
          rows_bytes(tensor, 0, layout.block_count(), 0, layout.slice_count());
      sizes.push_back(bytes / dst_ranges_);
    }
    for (const Direction direction : {Direction::kIn, Direction::kOut}) {
      sizes.push_back(problem_.edges().bytes(direction, 0) / dst_ranges_);
    }
    return sizes;
  }

  // What the largest working set leaves.
  std::int64_t capacity() const {
    const std::vector<std::int64_t> free = problem_.free(problem_.empty_residency());
    return *std::min_element(free.begin(), free.end());
  }

  void walk(int index) {
    const PassDraft& pass = problem_.draft().passes[static_cast<std::size_t>(index)];
    const BlockRange& own = problem_.share().own;
    const std::int64_t dst_ranges = ceil_div(own.count(), pass.dst_range_blocks);
    for (std::int64_t sweep = 0; sweep < dst_ranges * pass.groups; ++sweep) {
      if (pass.edges) walk_spans(index, pass, sweep < pass.groups);
      const std::int64_t first = own.first + sweep % dst_ranges * pass.dst_range_blocks;
      const std::int64_t begin = first * dst_ranges_ / blocks_;
      const std::int64_t end =
          std::min(first + pass.dst_range_blocks, own.end) * dst_ranges_ / blocks_;
      for (std::int64_t at = begin; at < end; ++at) {
        for (const UseDraft& use : pass.uses) {
          if (use.role != UseRole::kStreamed && use.tensor >= 0) touch(index, use.tensor, at);
        }
      }
    }
    end_pass(index);
  }

  void walk_spans(int index, const PassDraft& pass, bool first) {
    const StageShape& stage = problem_.builder().stages()[static_cast<std::size_t>(pass.stage)];
    const auto side = static_cast<std::size_t>(stage.edge_file);
    const std::int64_t first_there = first_chunk(problem_, stage.edge_file);
    std::int64_t hits = 0;
    for (std::int64_t at = 0; at < dst_ranges_; ++at) {
      for (const UseDraft& use : pass.uses) {
        if (use.role == UseRole::kStreamed && (first || !use.sliced)) touch(index, use.tensor, at);
      }
      if (at * problem_.edges().chunk_count() / dst_ranges_ < first_there) continue;
      hits += cache_.touch(edges_ + static_cast<int>(side), at) ? 1 : 0;
    }
    edge_hits_[side] = std::min(edge_hits_[side], hits);
  }

  // Where it gets here: the memory above may have the destination range.
  void touch(int pass, int tensor, std::int64_t dst_range) {
    for (std::size_t t = 0; t < hits_.size(); ++t) {
      const Timeline& line = problem_.timelines()[t];
      if (line.tensor != tensor || !has(line, dst_range)) continue;
      for (std::size_t i = 0; i < line.accesses.size(); ++i) {
        if (line.accesses[i].pass != pass) continue;
        Hits& counted = hits_[t][i];
        const bool first = counted.sweeps++ < counts_[t];
        if (cache_.touch(static_cast<int>(t), dst_range)) ++(first ? counted.first : counted.later);
      }
    }
  }

  // Made tensors are dropped after their last use.
  void end_pass(int pass) {
    for (std::size_t t = 0; t < hits_.size(); ++t) {
      const Timeline& line = problem_.timelines()[t];
      const auto tensor = static_cast<int>(t);
      if (line.cyclic || line.accesses.empty()) continue;
      if (std::max(line.accesses.back().pass, line.tail_pass) != pass) continue;
      for (std::int64_t dst_range = 0; dst_range < dst_ranges_; ++dst_range) {
        tails_[t] += cache_.pins(tensor, dst_range) ? 1 : 0;
      }
      cache_.drop_file(tensor);
    }
  }

  ResidentSet residency() const {
    ResidentSet out = problem_.empty_residency();
    for (std::size_t t = 0; t < hits_.size(); ++t) {
      const Timeline& line = problem_.timelines()[t];
      const auto level = [&](std::int64_t dst_ranges) {
        if (counts_[t] == 0) return line.first_block;  // it lies inside a destination range
        if (dst_ranges >= counts_[t]) return line.end_block;
        return whole_blocks(line, line.first_block + first_block(line, dst_ranges));
      };
      ResidentPrefix& levels = out.tensors[t];
      for (int i = 0; i < line.interval_count(); ++i) {
        const int end = line.end_of(i);
        const std::int64_t keep =
            level(end < 0 ? tails_[t] : hits_[t][static_cast<std::size_t>(end)].first);
        levels.keep[static_cast<std::size_t>(i)] = keep;
        for (const int access : {i, end}) {
          if (access < 0) continue;
          std::int64_t& during = levels.during[static_cast<std::size_t>(access)];
          during = std::max(during, keep);
        }
      }
      for (std::size_t i = 0; i < hits_[t].size(); ++i) {
        const std::int64_t sweeps = line.accesses[i].sweeps;
        if (sweeps < 2) continue;
        levels.during[i] = std::max(levels.during[i], level(hits_[t][i].later / (sweeps - 1)));
      }
    }
    const std::int64_t chunks = problem_.edges().chunk_count();
    for (std::size_t side = 0; side < 2; ++side) {
      const std::int64_t first = out.edge_chunks[side];
      out.edge_chunks[side] = std::min(first + edge_hits_[side] * chunks / dst_ranges_, chunks);
    }
    return out;
  }

  const PlanProblem& problem_;
  std::int64_t blocks_, dst_ranges_;
  Cache cache_;
  int edges_;                            // number of the first edge file
  std::vector<std::int64_t> counts_;     // by timeline: its destination ranges
  std::vector<std::vector<Hits>> hits_;  // by timeline and access
  std::vector<std::int64_t> tails_;      // by timeline: destination ranges there at the end
  std::array<std::int64_t, 2> edge_hits_ = {};
};

}  // namespace

ResidentSet choose_by_lru(const PlanProblem& problem) { return LruWalk(problem).run(); }

}  // namespace ooc
