// Records that tasks give out, written in sorted runs. A worker has a small buffer of its own,
// which goes into one that all of them fill; so runs are few, however many workers there are.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "storage/edges/sorted_runs.h"

namespace ooc {

// add() by many workers, each in its own name; finish() once none is at work. Errors of storage
// pass through.
class RecordBuffers {
 public:
  // A run holds `records` at most, and there are `workers`, numbered from 0. The runs outlive it.
  RecordBuffers(SortedRuns& runs, std::int64_t workers, std::size_t records);

  // `data`: SortedRuns::data_bytes(). Records of equal keys keep the order in which one worker
  // gives them; those of several workers have none.
  void add(std::size_t worker, std::uint64_t key, const std::byte* data = nullptr) {
    Records& own = own_[worker].records;
    own.keys.push_back(key);
    if (data_bytes_ > 0 && data != nullptr) {
      own.data.insert(own.data.end(), data, data + data_bytes_);
    }
    if (own.size() >= kOwnRecords) append(own);
  }
  // The runs are finished (SortedRuns::finish()).
  void finish();

  // A full run has memory for so many more.
  static std::int64_t spare_records(std::int64_t workers) {
    return workers * static_cast<std::int64_t>(kOwnRecords);
  }
  // Of memory, at most; and the records of a run that take so much.
  static std::int64_t bytes(std::size_t data_bytes, std::int64_t workers, std::size_t records);
  static std::size_t records_in(std::int64_t bytes, std::size_t data_bytes, std::int64_t workers);
  // The least that records_in() comes to.
  static std::int64_t least_bytes(std::size_t data_bytes, std::int64_t workers);

 private:
  static constexpr std::size_t kOwnRecords = 2048;
  static constexpr int kMostWriting = 3;  // runs that are sorted and written at once
  struct alignas(64) Own {
    Records records;
  };
  void append(Records& own);
  void write(Records&& run, std::uint64_t number);

  SortedRuns& runs_;
  std::size_t data_bytes_;
  std::size_t most_;
  std::vector<Own> own_;
  std::mutex mutex_;
  std::condition_variable written_;
  Records shared_;           // under the mutex, like what follows
  std::uint64_t begun_ = 0;  // runs
  int writing_ = 0;
};

}  // namespace ooc
