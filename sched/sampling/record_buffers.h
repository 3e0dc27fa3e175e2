// Records that tasks give out, written in sorted runs: a buffer a worker.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "storage/edges/sorted_runs.h"

namespace ooc {

// add() by many workers, each in its own name; finish() once none is at work. Errors of storage
// pass through.
class RecordBuffers {
 public:
  // A buffer holds `records`, and there are `workers`, numbered from 0. The runs outlive it.
  RecordBuffers(SortedRuns& runs, std::int64_t workers, std::size_t records);

  // `data`: SortedRuns::data_bytes(). Records of equal keys keep the order in which one worker
  // gives them; those of several workers have none.
  void add(std::size_t worker, std::uint64_t key, const std::byte* data = nullptr) {
    Records& buffer = buffers_[worker].records;
    if (buffer.keys.capacity() == 0) buffer.keys.reserve(most_);
    buffer.keys.push_back(key);
    if (data_bytes_ > 0) buffer.data.insert(buffer.data.end(), data, data + data_bytes_);
    if (buffer.size() == most_) write(buffer);
  }
  // The runs are finished (SortedRuns::finish()).
  void finish();

  // Of memory: a worker's buffer, and what sorting takes beside it.
  static std::int64_t record_bytes(std::size_t data_bytes);

 private:
  struct alignas(64) Buffer {
    Records records;
  };
  void write(Records& buffer);

  SortedRuns& runs_;
  std::size_t data_bytes_;
  std::size_t most_;
  std::vector<Buffer> buffers_;
  std::atomic<std::uint64_t> runs_written_{0};
};

}  // namespace ooc
