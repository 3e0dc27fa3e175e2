#include "storage/import/edges/distinct_edges.h"

#include <fmt/format.h>
#include <hwy/contrib/sort/vqsort.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

namespace ooc {
namespace {

constexpr std::uint64_t kLastKey = std::numeric_limits<std::uint64_t>::max();
constexpr std::int64_t kLeastAtOnce = 1 << 12;
constexpr std::int64_t kMostAtOnce = 4 << 20;

// Keys ascend as edges do; ids fit 32 bits.
std::uint64_t key_of(const Edge& edge) {
  return static_cast<std::uint64_t>(edge.source) << 32 |
         static_cast<std::uint64_t>(edge.destination);
}
Edge edge_of(std::uint64_t key) {
  return {static_cast<VertexId>(key >> 32), static_cast<VertexId>(key & 0xffffffffu)};
}

std::int64_t threads() { return tbb::this_task_arena::max_concurrency(); }

std::int64_t at_once(std::int64_t memory_bytes, std::int64_t bytes_each) {
  return std::clamp(memory_bytes / bytes_each, kLeastAtOnce, kMostAtOnce);
}

void keep_distinct(Records& records) {
  auto& keys = records.keys;
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

}  // namespace

// Draws in memory, sorted by key; the first of each.
struct DistinctEdges::Candidates {
  AlignedVector<hwy::uint128_t> draws;  // the key above the draw's index
  std::vector<std::uint8_t> known;      // whether the edge was there before
};

DistinctEdges::DistinctEdges(FileSystem& files, std::string scratch, DrawEdge draw,
                             std::int64_t wanted, std::int64_t most_draws,
                             std::int64_t memory_bytes, const Control& control)
    : files_(files),
      scratch_(std::move(scratch)),
      draw_(std::move(draw)),
      wanted_(wanted),
      memory_bytes_(memory_bytes),
      control_(control) {
  // Never more draws than are missing, so that none is one too many; the last of them in memory,
  // in the order of their indexes.
  constexpr std::int64_t kCandidateBytes = 2 * sizeof(hwy::uint128_t) + 1;
  const std::int64_t most_candidates =
      std::max(memory_bytes_ / 2 / kCandidateBytes, 2 * kLeastAtOnce);
  while (found_ < wanted_ && drawn_ < most_draws) {
    const std::int64_t missing = wanted_ - found_;
    const std::int64_t ample = missing + missing / 4 + 1024;
    if (drawn_ > 0 && ample <= most_candidates) {
      add_first_new(ample);
    } else {
      draw_runs(missing);
      found_ = count_distinct();
    }
  }
}

// Blocks of draws, each a sorted run.
void DistinctEdges::draw_runs(std::int64_t draws) {
  runs_.push_back(
      std::make_unique<SortedRuns>(files_, fmt::format("{}.{}", scratch_, runs_.size()), 0));
  SortedRuns& runs = *runs_.back();
  const std::int64_t block = at_once(memory_bytes_ / (threads() + 1), 2 * sizeof(std::uint64_t));
  std::int64_t begin = 0;
  const auto next = [&](tbb::flow_control& flow) {
    const std::int64_t first = begin;
    if (first >= draws) flow.stop();
    begin += block;
    control_.step("drawing edges", static_cast<double>(std::min(first, draws)),
                  static_cast<double>(draws));
    return first;
  };
  const auto draw = [&](std::int64_t first) {
    Records run;
    const std::int64_t count = std::min(block, draws - first);
    run.keys.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      const Edge edge = draw_(static_cast<std::uint64_t>(drawn_ + first + i));
      if (edge.source != edge.destination) run.keys.push_back(key_of(edge));
    }
    sort_records(run, 0);
    keep_distinct(run);
    runs.write(static_cast<std::uint64_t>(first / block), run);
  };
  tbb::parallel_pipeline(
      static_cast<std::size_t>(threads()),
      tbb::make_filter<void, std::int64_t>(tbb::filter_mode::serial_in_order, next) &
          tbb::make_filter<std::int64_t, void>(tbb::filter_mode::parallel, draw));
  runs.finish();
  drawn_ += draws;
}

std::int64_t DistinctEdges::count_distinct() const {
  std::atomic<std::int64_t> count{0};
  for_each_range("counting edges", [&](const Range&, const Records& keys) {
    count += static_cast<std::int64_t>(keys.size());
  });
  return count;
}

// Adds the first new edges of the next draws, at most as many as are missing.
void DistinctEdges::add_first_new(std::int64_t draws) {
  Candidates candidates;
  auto& found = candidates.draws;
  found.resize(static_cast<std::size_t>(draws));
  tbb::parallel_for(std::int64_t{0}, draws, [&](std::int64_t i) {
    const auto index = static_cast<std::uint64_t>(drawn_ + i);
    found[static_cast<std::size_t>(i)] = {index, key_of(draw_(index))};
  });
  drawn_ += draws;
  std::erase_if(found, [](const hwy::uint128_t& draw) {
    const Edge edge = edge_of(draw.hi);
    return edge.source == edge.destination;
  });
  hwy::Sorter sorter;
  sorter(found.data(), found.size(), hwy::SortAscending());
  found.erase(std::unique(found.begin(), found.end(),
                          [](const auto& a, const auto& b) { return a.hi == b.hi; }),
              found.end());
  remove_known(candidates);
  const auto missing = static_cast<std::size_t>(wanted_ - found_);
  if (found.size() > missing) {
    for (auto& draw : found) std::swap(draw.hi, draw.lo);
    sorter(found.data(), found.size(), hwy::SortAscending());
    found.resize(missing);
    for (auto& draw : found) std::swap(draw.hi, draw.lo);
  }
  Records run;
  for (const auto& draw : found) run.keys.push_back(draw.hi);
  sort_records(run, 0);
  found_ += static_cast<std::int64_t>(run.size());
  runs_.push_back(
      std::make_unique<SortedRuns>(files_, fmt::format("{}.{}", scratch_, runs_.size()), 0));
  runs_.back()->write(0, run);
  runs_.back()->finish();
}

void DistinctEdges::remove_known(Candidates& candidates) const {
  auto& draws = candidates.draws;
  candidates.known.assign(draws.size(), 0);
  for_each_range("comparing edges", [&](const Range& range, const Records& keys) {
    const auto before = [](const hwy::uint128_t& draw, std::uint64_t key) { return draw.hi < key; };
    auto draw = std::lower_bound(draws.begin(), draws.end(), range.first, before);
    auto key = keys.keys.begin();
    while (draw != draws.end() && draw->hi <= range.last && key != keys.keys.end()) {
      if (*key < draw->hi) {
        ++key;
      } else {
        candidates.known[static_cast<std::size_t>(draw - draws.begin())] = *key == draw->hi;
        ++draw;
      }
    }
  });
  std::size_t place = 0;
  std::erase_if(draws, [&](const auto&) { return candidates.known[place++] != 0; });
}

// Bounds are multiples of the runs' strides, so there is no use in asking for less of each.
DistinctEdges::Range DistinctEdges::range_from(std::uint64_t first, std::uint64_t most) const {
  constexpr std::uint64_t kLeastOfRun = 1024;
  std::uint64_t run_count = 0;
  for (const auto& runs : runs_) run_count += runs->run_count();
  most = std::max(most, kLeastOfRun * run_count);
  const auto bound = [&](std::uint64_t last) {
    std::uint64_t records = 0;
    for (const auto& runs : runs_) records += runs->size_bound(first, last);
    return records;
  };
  std::uint64_t low = first, high = kLastKey;
  if (bound(high) <= most) return {first, high};
  while (low < high) {
    const std::uint64_t middle = high - (high - low) / 2;
    if (bound(middle) <= most) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return {first, low};
}

void DistinctEdges::read(const Range& range, Records& part, Records& out) const {
  out.clear();
  for (const auto& runs : runs_) {
    runs->read(range.first, range.last, part);
    out.keys.insert(out.keys.end(), part.keys.begin(), part.keys.end());
  }
  if (runs_.size() > 1) sort_records(out, 0);
  keep_distinct(out);
}

void DistinctEdges::for_each_range(
    std::string_view phase, const std::function<void(const Range&, const Records&)>& visit) const {
  constexpr std::int64_t kBytesEach = 4 * sizeof(std::uint64_t);  // both Records, and growth
  const auto most =
      static_cast<std::uint64_t>(at_once(memory_bytes_ / 2 / (threads() + 1), kBytesEach));
  std::uint64_t total = 0;
  for (const auto& runs : runs_) total += runs->size();
  std::uint64_t begin = 0;
  bool ended = false;
  std::atomic<std::uint64_t> done{0};
  const auto next = [&](tbb::flow_control& flow) -> Range {
    if (ended) {
      flow.stop();
      return {};
    }
    control_.step(phase, static_cast<double>(std::min<std::uint64_t>(done, total)),
                  static_cast<double>(total));
    const Range range = range_from(begin, most);
    ended = range.last == kLastKey;
    begin = range.last + 1;
    return range;
  };
  const auto work = [&](const Range& range) {
    Records part, keys;
    read(range, part, keys);
    visit(range, keys);
    done += keys.size();
  };
  tbb::parallel_pipeline(static_cast<std::size_t>(threads()),
                         tbb::make_filter<void, Range>(tbb::filter_mode::serial_in_order, next) &
                             tbb::make_filter<Range, void>(tbb::filter_mode::parallel, work));
}

bool DistinctEdges::next(std::int64_t max_edges, EdgeBlock& block) {
  constexpr std::int64_t kBytesEach = 4 * sizeof(std::uint64_t);
  const auto most = static_cast<std::uint64_t>(at_once(reading_memory(memory_bytes_), kBytesEach));
  block.number = number_++;
  block.edges.clear();
  block.data.clear();
  while (static_cast<std::int64_t>(block.edges.size()) < max_edges) {
    if (next_key_ == held_.size()) {
      if (begun_ && range_.last == kLastKey) break;
      range_ = range_from(begun_ ? range_.last + 1 : 0, most);
      begun_ = true;
      read(range_, part_, held_);
      next_key_ = 0;
      continue;
    }
    const std::size_t wanted = static_cast<std::size_t>(max_edges) - block.edges.size();
    const std::size_t end = std::min(held_.size(), next_key_ + wanted);
    for (; next_key_ < end; ++next_key_) block.edges.push_back(edge_of(held_.keys[next_key_]));
  }
  return !block.edges.empty();
}

void DistinctEdges::rewind() {
  held_.clear();
  next_key_ = 0;
  begun_ = false;
  number_ = 0;
}

}  // namespace ooc
