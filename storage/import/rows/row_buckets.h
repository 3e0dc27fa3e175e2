// Rows thrown into buckets, each a run of places that fits the memory, and taken out in the order
// of their places: a sort of rows whose places are known, outside memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/base/aligned_vector.h"
#include "storage/io/file.h"

namespace ooc {

// A record is the row's place within its bucket and the row. The file is removed by the destructor.
// Memory: memory_bytes, or a few rows where these take more. One thread; the work runs on all of
// TBB's.
class RowBuckets {
 public:
  struct Options {
    std::string scratch;  // the path of the file
    std::int64_t rows = 0;
    std::size_t row_bytes = 0;
    std::int64_t memory_bytes = 0;
  };
  RowBuckets(FileSystem& files, const Options& options);
  ~RowBuckets();
  RowBuckets(const RowBuckets&) = delete;
  RowBuckets& operator=(const RowBuckets&) = delete;

  // Requires: each of the places 0 to rows - 1 once in all.
  void add(std::int64_t place, const std::byte* row);
  // After the last add().
  void finish();
  // The rows of the next bucket, in order; none at the end. Valid until the next call.
  std::span<const std::byte> next();
  // Goes on at the first row.
  void rewind() { next_place_ = 0; }

 private:
  struct Bucket {
    AlignedVector<std::byte> buffer;
    std::uint64_t written = 0;
  };
  void flush(std::int64_t index);
  void put(std::span<const std::byte> records);

  FileSystem& files_;
  std::string path_;
  std::int64_t rows_;
  std::size_t row_bytes_;
  std::size_t record_bytes_;
  std::unique_ptr<WritableFile> writer_;
  std::unique_ptr<ReadableFile> reader_;
  std::int64_t bucket_rows_ = 0;
  std::size_t buffer_bytes_ = 0;  // of a bucket, before it is written
  std::size_t read_bytes_ = 0;
  std::vector<Bucket> buckets_;
  std::int64_t next_place_ = 0;
  AlignedVector<std::byte> records_;  // as the file holds them
  AlignedVector<std::byte> placed_;   // rows of one bucket
};

}  // namespace ooc
