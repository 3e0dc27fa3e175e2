#include "storage/import/edges/remap.h"

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "storage/base/errors.h"
#include "storage/import/rows/row_placer.h"

namespace ooc {
namespace {

constexpr std::int64_t kPieceEdges = 256 << 10;  // read at once
constexpr std::int64_t kMostSorted = 64 << 20;   // at once: seconds that cannot be interrupted
constexpr std::size_t kPageIds = 512;
constexpr std::int64_t kCopyIds = 64 << 10;
// Arrays that grow hold thrice their elements while they move.
constexpr std::int64_t kGrowth = 3;

// Keys ascend as ids do, negative ones first.
std::uint64_t key_of(std::int64_t id) {
  return static_cast<std::uint64_t>(id) ^ std::uint64_t{1} << 63;
}
std::int64_t id_of(std::uint64_t key) {
  return static_cast<std::int64_t>(key ^ std::uint64_t{1} << 63);
}

std::size_t fitting(std::int64_t memory_bytes, std::int64_t bytes_each) {
  return static_cast<std::size_t>(std::clamp(memory_bytes / bytes_each, kPieceEdges, kMostSorted));
}

void keep_distinct(AlignedVector<std::uint64_t>& keys) {
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

// The largest key up to which all records from `first` on are at most `most`; at least `first`.
std::uint64_t last_of_range(const SortedRuns& runs, std::uint64_t first, std::size_t most) {
  std::uint64_t low = first, high = std::numeric_limits<std::uint64_t>::max();
  if (runs.size_bound(first, high) <= most) return high;
  while (low < high) {
    const std::uint64_t middle = high - (high - low) / 2;
    if (runs.size_bound(first, middle) <= most) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// Runs of distinct ids.
void sort_ids(EdgeSource& edges, SortedRuns& runs, std::int64_t memory_bytes,
              const Control& control) {
  const std::size_t most = 2 * fitting(memory_bytes, 2 * sizeof(std::uint64_t) * kGrowth);
  const auto total = static_cast<double>(edges.known_edges().value_or(0));
  std::uint64_t number = 0;
  std::int64_t read = 0;
  Records run;
  EdgeBlock block;
  const auto write = [&] {
    sort_records(run, 0);
    keep_distinct(run.keys);
    runs.write(number++, run);
    run.clear();
  };
  while (edges.next(kPieceEdges, block)) {
    if (run.size() + 2 * block.edges.size() > most) write();
    for (const Edge& edge : block.edges) {
      run.keys.push_back(key_of(edge.source));
      run.keys.push_back(key_of(edge.destination));
    }
    read += static_cast<std::int64_t>(block.edges.size());
    control.step("collecting ids", static_cast<double>(read), total);
  }
  write();
  runs.finish();
}

}  // namespace

OriginalIds::OriginalIds(FileSystem& files, const std::string& scratch, EdgeSource& edges,
                         std::int64_t memory_bytes, const Control& control)
    : files_(files), path_(scratch + ".distinct") {
  SortedRuns runs(files, scratch + ".runs", 0);
  sort_ids(edges, runs, memory_bytes, control);
  write_distinct(runs, memory_bytes, control);
  file_ = files_.open(path_);
}

OriginalIds::~OriginalIds() {
  file_.reset();
  try {
    files_.remove_all(path_);
  } catch (const Error&) {  // scratch: whoever owns its directory removes that, too
  }
}

void OriginalIds::write_distinct(const SortedRuns& runs, std::int64_t memory_bytes,
                                 const Control& control) {
  const auto file = files_.create(path_);
  const std::size_t most = fitting(memory_bytes, sizeof(std::uint64_t) * kGrowth);
  Records range;
  std::vector<std::int64_t> ids;
  std::uint64_t read = 0;
  for (std::uint64_t first = 0, last = 0;; first = last + 1) {
    last = last_of_range(runs, first, most);
    runs.read(first, last, range);
    read += range.size();
    keep_distinct(range.keys);
    for (std::size_t begin = 0; begin < range.size(); begin += ids.size()) {
      ids.resize(std::min<std::size_t>(kCopyIds, range.size() - begin));
      std::transform(range.keys.begin() + static_cast<std::ptrdiff_t>(begin),
                     range.keys.begin() + static_cast<std::ptrdiff_t>(begin + ids.size()),
                     ids.begin(), id_of);
      file->write_at(static_cast<std::uint64_t>(size_) * sizeof(std::int64_t),
                     std::as_bytes(std::span(ids)));
      for (std::size_t i = 0; i < ids.size(); ++i, ++size_) {
        if (size_ % static_cast<std::int64_t>(kPageIds) == 0) firsts_.push_back(ids[i]);
      }
    }
    control.step("merging ids", static_cast<double>(read), static_cast<double>(runs.size()));
    if (last == std::numeric_limits<std::uint64_t>::max()) break;
  }
  file->close();
}

std::int64_t OriginalIds::memory_for(std::int64_t ids) {
  return ids / static_cast<std::int64_t>(kPageIds) * static_cast<std::int64_t>(sizeof(ids)) *
         kGrowth;
}

std::optional<VertexId> OriginalIds::find(std::int64_t id) {
  const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), id);
  if (after == firsts_.begin()) return std::nullopt;
  const auto number = static_cast<std::size_t>(after - firsts_.begin()) - 1;
  const auto begin = static_cast<std::int64_t>(number * kPageIds);
  if (page_.empty() || page_number_ != number) {
    page_.resize(std::min(kPageIds, static_cast<std::size_t>(size_ - begin)));
    read(begin, page_);
    page_number_ = number;
  }
  const auto found = std::lower_bound(page_.begin(), page_.end(), id);
  if (found == page_.end() || *found != id) return std::nullopt;
  return begin + (found - page_.begin());
}

void OriginalIds::read(std::int64_t begin, std::span<std::int64_t> out) const {
  read_exact(*file_, static_cast<std::uint64_t>(begin) * sizeof(std::int64_t),
             std::as_writable_bytes(out));
}

RemappedEdgeSource::RemappedEdgeSource(EdgeSource& source, OriginalIds& ids, std::size_t data_bytes,
                                       std::int64_t memory_bytes, const Control& control)
    : source_(source),
      ids_(ids),
      data_bytes_(data_bytes),
      control_(control),
      most_edges_(
          fitting(memory_bytes, static_cast<std::int64_t>(sizeof(Edge) + data_bytes) * kGrowth +
                                    2 * static_cast<std::int64_t>(sizeof(hwy::uint128_t)))) {}

bool RemappedEdgeSource::next(std::int64_t max_edges, EdgeBlock& block) {
  block.number = number_++;
  block.edges.clear();
  block.data.clear();
  const auto wanted = static_cast<std::size_t>(max_edges);
  while (block.edges.size() < wanted && (next_edge_ < held_.edges.size() || refill())) {
    const std::size_t count =
        std::min(wanted - block.edges.size(), held_.edges.size() - next_edge_);
    const auto edges = std::span(held_.edges).subspan(next_edge_, count);
    const auto data = std::span(held_.data).subspan(next_edge_ * data_bytes_, count * data_bytes_);
    block.edges.insert(block.edges.end(), edges.begin(), edges.end());
    block.data.insert(block.data.end(), data.begin(), data.end());
    next_edge_ += count;
  }
  return !block.edges.empty();
}

void RemappedEdgeSource::rewind() {
  source_.rewind();
  held_ = {};
  next_edge_ = 0;
  number_ = 0;
}

// In the order of their ids, so that the file of ids is read from front to back.
bool RemappedEdgeSource::refill() {
  held_.edges.clear();
  held_.data.clear();
  next_edge_ = 0;
  EdgeBlock piece;
  while (held_.edges.size() + kPieceEdges <= most_edges_ && source_.next(kPieceEdges, piece)) {
    held_.edges.insert(held_.edges.end(), piece.edges.begin(), piece.edges.end());
    held_.data.insert(held_.data.end(), piece.data.begin(), piece.data.end());
    control_.check();
  }
  std::vector<hwy::uint128_t> ends(2 * held_.edges.size());
  for (std::size_t i = 0; i < held_.edges.size(); ++i) {
    ends[2 * i].hi = key_of(held_.edges[i].source);
    ends[2 * i].lo = 2 * i;
    ends[2 * i + 1].hi = key_of(held_.edges[i].destination);
    ends[2 * i + 1].lo = 2 * i + 1;
  }
  hwy::Sorter()(ends.data(), ends.size(), hwy::SortAscending());
  VertexId dense = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (i == 0 || ends[i].hi != ends[i - 1].hi) {
      const auto found = ids_.find(id_of(ends[i].hi));
      OOC_CHECK(found.has_value());
      dense = *found;
    }
    Edge& edge = held_.edges[ends[i].lo / 2];
    (ends[i].lo % 2 == 0 ? edge.source : edge.destination) = dense;
  }
  return !held_.edges.empty();
}

void write_original_ids(FileSystem& files, DatasetWriter& writer, const OriginalIds& ids,
                        std::span<const VertexIndex> new_ids, std::int64_t memory_bytes,
                        const Control& control) {
  RowPlacer placer(
      files, writer.original_ids(), new_ids,
      {writer.scratch_path("original_ids"), ids.size(), sizeof(std::int64_t), memory_bytes});
  std::vector<std::int64_t> part;
  for (std::int64_t begin = 0; begin < ids.size(); begin += kCopyIds) {
    part.resize(static_cast<std::size_t>(std::min(kCopyIds, ids.size() - begin)));
    ids.read(begin, part);
    placer.add(std::as_bytes(std::span(part)));
  }
  placer.finish("writing ids", control);
  writer.finish_original_ids();
}

}  // namespace ooc
