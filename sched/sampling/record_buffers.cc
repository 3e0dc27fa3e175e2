#include "sched/sampling/record_buffers.h"

#include <algorithm>
#include <utility>

#include "storage/edges/edge_sorter.h"

namespace ooc {
namespace {

constexpr std::size_t kLeastRecords = 4096;

std::int64_t record_bytes(std::size_t data_bytes) {
  return static_cast<std::int64_t>(sizeof(std::uint64_t) + data_bytes) + sort_memory(data_bytes);
}

}  // namespace

RecordBuffers::RecordBuffers(SortedRuns& runs, std::int64_t workers, std::size_t records)
    : runs_(runs),
      data_bytes_(runs.data_bytes()),
      most_(records),
      own_(static_cast<std::size_t>(workers)) {}

std::int64_t RecordBuffers::bytes(std::size_t data_bytes, std::int64_t workers,
                                  std::size_t records) {
  constexpr std::int64_t kGrown = 2;  // small ones grow by doubling
  const auto own = workers * static_cast<std::int64_t>(kOwnRecords);
  return ((kMostWriting + 1) * (static_cast<std::int64_t>(records) + own) + kGrown * own) *
         record_bytes(data_bytes);
}

std::size_t RecordBuffers::records_in(std::int64_t bytes, std::size_t data_bytes,
                                      std::int64_t workers) {
  const std::int64_t own = RecordBuffers::bytes(data_bytes, workers, 0);
  const std::int64_t records = (bytes - own) / ((kMostWriting + 1) * record_bytes(data_bytes));
  return static_cast<std::size_t>(std::clamp<std::int64_t>(records, kLeastRecords, 16 << 20));
}

std::int64_t RecordBuffers::least_bytes(std::size_t data_bytes, std::int64_t workers) {
  return bytes(data_bytes, workers, kLeastRecords);
}

void RecordBuffers::append(Records& own) {
  Records full;
  std::uint64_t number = 0;
  {
    std::unique_lock lock(mutex_);
    if (shared_.keys.capacity() == 0) {
      const std::size_t room = most_ + own_.size() * kOwnRecords;  // while others wait
      shared_.keys.reserve(room);
      shared_.data.reserve(room * data_bytes_);
    }
    shared_.keys.insert(shared_.keys.end(), own.keys.begin(), own.keys.end());
    shared_.data.insert(shared_.data.end(), own.data.begin(), own.data.end());
    own.clear();
    if (shared_.size() < most_) return;
    written_.wait(lock, [this] { return writing_ < kMostWriting; });
    // Somebody else may have taken it meanwhile.
    if (shared_.size() < most_) return;
    full = std::exchange(shared_, {});
    number = begun_++;
    ++writing_;
  }
  write(std::move(full), number);
}

void RecordBuffers::write(Records&& run, std::uint64_t number) {
  const auto done = [this] {
    const std::lock_guard lock(mutex_);
    --writing_;
    written_.notify_all();
  };
  try {
    sort_records(run, data_bytes_);
    if (run.size() < most_) {  // what stays in memory takes no more than it has
      run.keys.shrink_to_fit();
      run.data.shrink_to_fit();
    }
    runs_.write(number, std::move(run));
  } catch (...) {
    done();
    throw;
  }
  run = {};
  done();
}

void RecordBuffers::finish() {
  for (Own& own : own_) {
    if (own.records.size() > 0) append(own.records);
    own.records = {};
  }
  ++writing_;
  write(std::exchange(shared_, {}), begun_++);
  runs_.finish();
}

}  // namespace ooc
