// Records of a 64-bit key and a fixed number of bytes, sorted outside memory: each write() makes
// one run of what was sorted in memory; read() brings the records of a range of keys together from
// all runs. How the runs were cut never shows: records of equal keys keep the order of the runs'
// numbers and, within a run, the order they were given in.
//
// Runs stay in memory as far as there is room for them. The others lie in one file, which the
// destructor removes. Memory: that room, 8 bytes for every kStride records, and what the callers
// hold.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "storage/base/aligned_vector.h"
#include "storage/io/file.h"

namespace ooc {

struct Records {
  AlignedVector<std::uint64_t> keys;
  AlignedVector<std::byte> data;  // data_bytes() each, in the order of `keys`

  std::size_t size() const { return keys.size(); }
  void clear() {
    keys.clear();
    data.clear();
  }
};

class SortedRuns {
 public:
  // Runs are cut every so many records: of a run in the file reading a range takes as many more
  // keys, about.
  static constexpr std::uint64_t kStride = 256;

  SortedRuns(FileSystem& files, std::string path, std::size_t data_bytes,
             std::size_t memory_bytes = 0);
  ~SortedRuns();
  SortedRuns(const SortedRuns&) = delete;
  SortedRuns& operator=(const SortedRuns&) = delete;

  std::size_t data_bytes() const { return data_bytes_; }  // of a record, without its key

  // Writes sorted records as run `number`; each number once. Many threads.
  void write(std::uint64_t number, const Records& records);
  // The same; records that stay in memory are moved.
  void write(std::uint64_t number, Records&& records);
  // After the last write(), before the first read().
  void finish();

  std::uint64_t size() const { return size_; }
  std::size_t run_count() const { return runs_.size(); }
  std::uint64_t file_bytes() const { return end_; }         // written
  std::uint64_t read_bytes() const { return read_bytes_; }  // from the file, so far
  // At least the records with keys in [first, last], and not many more.
  std::uint64_t size_bound(std::uint64_t first, std::uint64_t last) const;
  // Of the file, the bytes that read() of these takes: at least, and not many more.
  std::uint64_t read_bound(std::uint64_t first, std::uint64_t last) const;
  // The records with keys in [first, last], in order, in place of what `out` holds. Many threads.
  void read(std::uint64_t first, std::uint64_t last, Records& out) const;

 private:
  // Sorted keys from `offset` on, their data after them, both at multiples of kChunkAlignment.
  struct Run {
    std::uint64_t number = 0;
    std::uint64_t offset = 0;
    std::uint64_t data_offset = 0;
    std::uint64_t size = 0;
    std::vector<std::uint64_t> strides;  // every kStride-th key
    Records held;                        // all of it, where it stays in memory
  };
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  // Records of the run among which all of [first, last] are.
  static Range enclosing(const Run& run, std::uint64_t first, std::uint64_t last);
  static Run describe(std::uint64_t number, const Records& records);
  void add(Run run);
  WritableFile& writer();
  bool take_memory(std::size_t bytes);
  void append(const Run& run, std::uint64_t first, std::uint64_t last, Records& out) const;
  void append_held(const Records& held, std::uint64_t first, std::uint64_t last,
                   Records& out) const;

  FileSystem& files_;
  std::string path_;
  std::size_t data_bytes_;
  std::size_t memory_left_;               // under the mutex
  std::unique_ptr<WritableFile> writer_;  // null: nothing was written; made under the mutex
  std::unique_ptr<ReadableFile> reader_;
  std::mutex mutex_;  // of runs_, while they are added
  std::vector<Run> runs_;
  std::atomic<std::uint64_t> end_{0};
  mutable std::atomic<std::uint64_t> read_bytes_{0};
  std::uint64_t size_ = 0;
};

// Sorts by key; records of equal keys keep their order.
void sort_records(Records& records, std::size_t data_bytes);

}  // namespace ooc
