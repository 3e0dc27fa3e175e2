#include "storage/import/ids/original_ids.h"

#include <fmt/format.h>
#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "storage/base/errors.h"
#include "storage/import/ids/unknown_ids.h"

namespace ooc {
namespace {

constexpr std::int64_t kLeastSorted = 256 << 10;
constexpr std::int64_t kMostSorted = 64 << 20;  // at once: seconds that cannot be interrupted
constexpr std::size_t kPageIds = 512;
constexpr std::int64_t kCopyIds = 64 << 10;

// Keys ascend as ids do, negative ones first.
std::uint64_t key_of(std::int64_t id) {
  return static_cast<std::uint64_t>(id) ^ std::uint64_t{1} << 63;
}
std::int64_t id_of(std::uint64_t key) {
  return static_cast<std::int64_t>(key ^ std::uint64_t{1} << 63);
}

std::size_t fitting(std::int64_t memory_bytes, std::int64_t bytes_each) {
  return static_cast<std::size_t>(std::clamp(memory_bytes / bytes_each, kLeastSorted, kMostSorted));
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
void sort_ids(const IdStream& ids, std::int64_t total, SortedRuns& runs, std::int64_t memory_bytes,
              const Control& control) {
  const std::size_t most =
      2 * fitting(memory_bytes, 2 * sizeof(std::uint64_t) * OriginalIds::kGrowth);
  std::uint64_t number = 0;
  std::int64_t read = 0;
  Records run;
  const auto write = [&] {
    sort_records(run, 0);
    keep_distinct(run.keys);
    runs.write(number++, run);
    run.clear();
  };
  for (auto next = ids(); !next.empty(); next = ids()) {
    if (run.size() + next.size() > most) write();
    for (const std::int64_t id : next) run.keys.push_back(key_of(id));
    read += static_cast<std::int64_t>(next.size());
    control.step("collecting ids", static_cast<double>(read), static_cast<double>(total));
  }
  write();
  runs.finish();
}

}  // namespace

OriginalIds::OriginalIds(FileSystem& files, const Options& options, const IdStream& ids,
                         std::int64_t total, const Control& control)
    : files_(files), path_(options.scratch + ".distinct"), source_(options.source) {
  SortedRuns runs(files, options.scratch + ".runs", 0);
  sort_ids(ids, total, runs, options.memory_bytes, control);
  write_distinct(runs, options.memory_bytes, control);
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

// In the order of the ids, so that the file of ids is read from front to back.
void OriginalIds::replace(std::span<std::int64_t> ids, const std::string& where) {
  static_assert(sizeof(hwy::uint128_t) == kReplaceBytes);
  std::vector<hwy::uint128_t> sorted(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    sorted[i].hi = key_of(ids[i]);
    sorted[i].lo = i;
  }
  hwy::Sorter()(sorted.data(), sorted.size(), hwy::SortAscending());
  std::vector<std::string> unknown;
  VertexId dense = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || sorted[i].hi != sorted[i - 1].hi) {
      const auto found = find(id_of(sorted[i].hi));
      if (!found) unknown.push_back(fmt::to_string(id_of(sorted[i].hi)));
      if (unknown.size() == kMostUnknownNamed) break;
      dense = found.value_or(0);
    }
    ids[sorted[i].lo] = dense;
  }
  if (!unknown.empty())
    throw DataError(unknown_ids(unknown, source_), where, unknown_ids_remedy(source_));
}

}  // namespace ooc
