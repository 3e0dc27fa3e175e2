#include "storage/edges/sorted_runs.h"

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "storage/base/errors.h"
#include "storage/format/format.h"

namespace ooc {
namespace {

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment;
}

}  // namespace

void sort_records(Records& records, std::size_t data_bytes) {
  hwy::Sorter sorter;
  if (data_bytes == 0) {
    sorter(records.keys.data(), records.keys.size(), hwy::SortAscending());
    return;
  }
  // The place as the lower half makes the order stable.
  std::vector<hwy::uint128_t> places(records.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i].hi = records.keys[i];
    places[i].lo = i;
  }
  sorter(places.data(), places.size(), hwy::SortAscending());
  AlignedVector<std::byte> data(records.data.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    records.keys[i] = places[i].hi;
    std::memcpy(data.data() + i * data_bytes, records.data.data() + places[i].lo * data_bytes,
                data_bytes);
  }
  records.data.swap(data);
}

SortedRuns::SortedRuns(FileSystem& files, std::string path, std::size_t data_bytes,
                       std::size_t memory_bytes)
    : files_(files), path_(std::move(path)), data_bytes_(data_bytes), memory_left_(memory_bytes) {}

SortedRuns::~SortedRuns() {
  const bool is_file = writer_ != nullptr || reader_ != nullptr;
  writer_.reset();
  reader_.reset();
  try {
    if (is_file) files_.remove_all(path_);
  } catch (const Error&) {  // scratch: whoever owns its directory removes that, too
  }
}

SortedRuns::Run SortedRuns::describe(std::uint64_t number, const Records& records) {
  Run run;
  run.number = number;
  run.size = records.size();
  for (std::size_t i = 0; i < records.size(); i += kStride) {
    run.strides.push_back(records.keys[i]);
  }
  return run;
}

void SortedRuns::add(Run run) {
  const std::lock_guard lock(mutex_);
  size_ += run.size;
  runs_.push_back(std::move(run));
}

WritableFile& SortedRuns::writer() {
  const std::lock_guard lock(mutex_);
  if (!writer_) writer_ = files_.create(path_);
  return *writer_;
}

void SortedRuns::write(std::uint64_t number, const Records& records) {
  OOC_CHECK(records.data.size() == records.size() * data_bytes_);
  if (records.size() == 0) return;
  Run run = describe(number, records);
  const auto keys = std::as_bytes(std::span(records.keys));
  run.offset = end_.fetch_add(aligned(keys.size()) + aligned(records.data.size()));
  run.data_offset = run.offset + aligned(keys.size());
  WritableFile& file = writer();
  file.write_at(run.offset, keys);
  if (!records.data.empty()) file.write_at(run.data_offset, records.data);
  add(std::move(run));
}

bool SortedRuns::take_memory(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > memory_left_) return false;
  memory_left_ -= bytes;
  return true;
}

void SortedRuns::write(std::uint64_t number, Records&& records) {
  OOC_CHECK(records.data.size() == records.size() * data_bytes_);
  const std::size_t bytes =
      records.keys.capacity() * sizeof(std::uint64_t) + records.data.capacity();
  if (records.size() == 0 || !take_memory(bytes)) return write(number, std::as_const(records));
  Run run = describe(number, records);
  run.held = std::move(records);
  records = {};
  add(std::move(run));
}

void SortedRuns::finish() {
  std::sort(runs_.begin(), runs_.end(),
            [](const Run& a, const Run& b) { return a.number < b.number; });
  if (!writer_) return;
  writer_->close();
  writer_.reset();
  reader_ = files_.open(path_);
}

SortedRuns::Range SortedRuns::enclosing(const Run& run, std::uint64_t first, std::uint64_t last) {
  const auto& strides = run.strides;
  const auto low = std::lower_bound(strides.begin(), strides.end(), first);
  const auto high = std::upper_bound(low, strides.end(), last);
  const auto begin = static_cast<std::uint64_t>(low - strides.begin());
  const auto end = static_cast<std::uint64_t>(high - strides.begin());
  return {begin == 0 ? 0 : (begin - 1) * kStride, std::min(end * kStride, run.size)};
}

std::uint64_t SortedRuns::size_bound(std::uint64_t first, std::uint64_t last) const {
  std::uint64_t bound = 0;
  for (const Run& run : runs_) {
    const Range range = enclosing(run, first, last);
    bound += range.end - range.begin;
  }
  return bound;
}

std::uint64_t SortedRuns::read_bound(std::uint64_t first, std::uint64_t last) const {
  std::uint64_t records = 0;
  for (const Run& run : runs_) {
    if (!run.held.keys.empty()) continue;
    const Range range = enclosing(run, first, last);
    records += range.end - range.begin;
  }
  return records * (sizeof(std::uint64_t) + data_bytes_);
}

void SortedRuns::append_held(const Records& held, std::uint64_t first, std::uint64_t last,
                             Records& out) const {
  const auto low = std::lower_bound(held.keys.begin(), held.keys.end(), first);
  const auto high = std::upper_bound(low, held.keys.end(), last);
  out.keys.insert(out.keys.end(), low, high);
  const auto bytes = static_cast<std::ptrdiff_t>(data_bytes_);
  out.data.insert(out.data.end(), held.data.begin() + (low - held.keys.begin()) * bytes,
                  held.data.begin() + (high - held.keys.begin()) * bytes);
}

void SortedRuns::append(const Run& run, std::uint64_t first, std::uint64_t last,
                        Records& out) const {
  if (!run.held.keys.empty()) return append_held(run.held, first, last, out);
  const Range range = enclosing(run, first, last);
  if (range.begin == range.end) return;
  const std::size_t before = out.size();
  out.keys.resize(before + (range.end - range.begin));
  const std::span<std::uint64_t> keys = std::span(out.keys).subspan(before);
  read_exact(*reader_, run.offset + range.begin * sizeof(std::uint64_t),
             std::as_writable_bytes(keys));
  read_bytes_ += keys.size_bytes();
  const auto low = std::lower_bound(keys.begin(), keys.end(), first);
  const auto high = std::upper_bound(low, keys.end(), last);
  const auto skipped = static_cast<std::uint64_t>(low - keys.begin());
  const auto wanted = static_cast<std::size_t>(high - low);
  if (skipped > 0) std::copy(low, high, keys.begin());
  out.keys.resize(before + wanted);
  if (data_bytes_ == 0 || wanted == 0) return;
  out.data.resize((before + wanted) * data_bytes_);
  read_exact(*reader_, run.data_offset + (range.begin + skipped) * data_bytes_,
             std::span(out.data).subspan(before * data_bytes_));
  read_bytes_ += wanted * data_bytes_;
}

void SortedRuns::read(std::uint64_t first, std::uint64_t last, Records& out) const {
  out.clear();
  const std::uint64_t bound = size_bound(first, last);
  out.keys.reserve(bound);
  out.data.reserve(bound * data_bytes_);
  for (const Run& run : runs_) append(run, first, last, out);
  // Often one run has all of them.
  if (!std::is_sorted(out.keys.begin(), out.keys.end())) sort_records(out, data_bytes_);
}

}  // namespace ooc
