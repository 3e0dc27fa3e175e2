// BlockIo in memory, and a wrapper that puts faults into any BlockIo.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "storage/io/block_transfer.h"
#include "storage/io/file.h"
#include "tests/support/aligned_buffer.h"

namespace ooc::test {

// Reads the files of any FileSystem; temporary files are in memory.
class MemoryBlockIo final : public BlockIo {
 public:
  struct Options {
    // Of all temporary files together.
    std::uint64_t disk_bytes = std::numeric_limits<std::uint64_t>::max();
    std::size_t largest_call = std::size_t{1} << 30;
    // Every call moves at most this many bytes, of however many it is asked for.
    std::size_t short_call_bytes = std::numeric_limits<std::size_t>::max();
  };
  explicit MemoryBlockIo(FileSystem& files) : MemoryBlockIo(files, Options()) {}
  MemoryBlockIo(FileSystem& files, Options options);

  std::string_view name() const override { return "memory"; }
  std::unique_ptr<BlockFile> open(const std::string& path) override;
  std::unique_ptr<BlockFile> create_temporary(const std::string& directory,
                                              std::uint64_t bytes) override;
  void submit(BlockRequest request) override { threads_.push(std::move(request)); }

 private:
  FileSystem& files_;
  Options options_;
  std::shared_ptr<std::atomic<std::uint64_t>> free_bytes_;
  TransferThreads threads_;
};

// What goes wrong. Counts are from 1; 0: never. A fault stays: every later request of its kind
// fails too.
struct BlockFaults {
  std::int64_t first_failing_read = 0;
  std::int64_t first_failing_write = 0;
  bool short_read = false;  // failing reads find that the file ends half-way, instead of EIO
  bool torn_write = false;  // the first failing write leaves half of its bytes
  int write_error = ENOSPC;
  std::chrono::microseconds write_takes{0};  // writes are done one after the other, each so long
  // The first so many writes are done when a read has been submitted after the last of them.
  std::int64_t writes_wait_for_read = 0;
  std::string of = {};  // only files in whose path this is count and fail
};

// Passes everything else on to `base`, which must outlive it. Set the faults while no request is
// under way.
class FaultyBlockIo final : public BlockIo {
 public:
  explicit FaultyBlockIo(BlockIo& base);
  ~FaultyBlockIo() override;

  BlockFaults faults;
  // Set by the read that makes so many, as if somebody interrupted just then.
  std::atomic<bool>* stop = nullptr;
  std::int64_t stop_at_read = 0;
  std::atomic<std::int64_t> reads{0};  // submitted so far
  std::atomic<std::int64_t> writes{0};
  std::atomic<std::size_t> largest_read{0};  // bytes
  std::atomic<bool> waited_in_vain{false};   // a write, for a read

  std::string_view name() const override { return base_.name(); }
  std::unique_ptr<BlockFile> open(const std::string& path) override { return base_.open(path); }
  std::unique_ptr<BlockFile> create_temporary(const std::string& directory,
                                              std::uint64_t bytes) override {
    return base_.create_temporary(directory, bytes);
  }
  void submit(BlockRequest request) override;

 private:
  ssize_t delay(const BlockTransfer& transfer);
  ssize_t fail(const BlockTransfer& transfer);

  BlockIo& base_;
  std::atomic<bool> torn_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t passed_on_ = 0;                       // to base_, and not completed yet
  std::atomic<std::int64_t> reads_before_write_{0};  // before the last write
  TransferThreads failing_, late_;
};

}  // namespace ooc::test
