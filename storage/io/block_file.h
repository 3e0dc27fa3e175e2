// Files read and written in large aligned ranges, many at once: what streams by goes through this,
// past the page cache where the file system allows it. Small files go through storage/io/file.h.
//
// A BlockIo owns the threads and the kernel's queue; a BlockFile is one file opened through it. A
// request is submitted at once and never waited for by the thread that submits it; its completion
// is called later from a thread of the BlockIo.
//
//   BlockWait wait;
//   io->submit({BlockRequest::Kind::kRead, file.get(), 4096, buffer, 2 << 20, wait.completion()});
//   ...
//   wait.wait();  // throws what went wrong
//
// Implementations, one source each: io_uring (block_file_uring.cc); pread and pwrite by a few
// threads, where io_uring is refused, as it often is in containers (block_file_threads.cc); the
// page cache through a mapping (block_file_mapped.cc), whose temporary files are one of the
// others'. The first two bypass the page cache (O_DIRECT) for each file whose file system can, and
// go through it for the others (direct_file.h). Tests have one in memory and one with faults
// (tests/support/fake_block_io.h).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace ooc {

// What offsets and buffers of requests are multiples of.
inline constexpr std::size_t kIoAlignment = 4096;

constexpr std::uint64_t io_aligned(std::uint64_t bytes) {
  return (bytes + kIoAlignment - 1) / kIoAlignment * kIoAlignment;
}

// An open file. It must outlive its requests.
class BlockFile {
 public:
  virtual ~BlockFile() = default;
  virtual const std::string& path() const = 0;
  virtual std::uint64_t size() const = 0;  // when it was opened
  virtual bool direct() const = 0;         // whether it bypasses the page cache
  // The file as memory, to read only, as long as this lives; empty: it isn't mapped. A read whose
  // data is its own place there brings the pages in, without a copy.
  virtual std::span<const std::byte> mapping() const { return {}; }
  // Pages of the mapping in this range, and some beside it, needn't stay in memory.
  virtual void release(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) const {}
};

// Called once, from a thread of the BlockIo, which serves nothing else meanwhile: it should only
// hand on. It may submit requests; it must not wait for any and must not throw. `error` is null if
// all bytes arrived, else an IoError with the file and the offset, or a DataError if the file ends
// before ("truncated").
using BlockCompletion = std::function<void(std::exception_ptr error)>;

struct BlockRequest {
  enum class Kind { kRead, kWrite };
  Kind kind = Kind::kRead;
  BlockFile* file = nullptr;
  std::uint64_t offset = 0;  // multiple of kIoAlignment
  // Multiple of kIoAlignment, with room for io_aligned(bytes); it must live until the completion.
  std::byte* data = nullptr;
  // Wanted; any number above 0, so an unaligned end of a file is read in place. What lies in the
  // buffer after them, up to io_aligned(bytes), is unspecified after a read and written by a
  // write.
  std::size_t bytes = 0;
  BlockCompletion done;
};

// All methods may be called from many threads.
class BlockIo {
 public:
  // Returns when every request has completed, those that completions submit included.
  virtual ~BlockIo() = default;
  virtual std::string_view name() const = 0;  // "io_uring", "pread" or "mapped"
  // False: requests take their time, but move nothing (storage/simulate/).
  virtual bool moves_data() const { return true; }
  // For reading. DataError where it is missing or no regular file.
  virtual std::unique_ptr<BlockFile> open(const std::string& path) = 0;
  // A file to read and write in `directory` that has no name there: it is gone with the handle,
  // however the process ends. Its space is reserved at once; IoError without a trace where there is
  // not enough. Bytes never written read as zero.
  virtual std::unique_ptr<BlockFile> create_temporary(const std::string& directory,
                                                      std::uint64_t bytes) = 0;
  // Returns at once. Reads never wait for writes.
  virtual void submit(BlockRequest request) = 0;
};

enum class BlockIoKind {
  kBest,     // io_uring; threads where it is refused
  kUring,    // io_uring; IoError where it is refused
  kThreads,  // pread and pwrite
  kMapped,   // files through a mapping, temporary ones as kBest
};

struct BlockIoOptions {
  BlockIoKind kind = BlockIoKind::kBest;
  // Reads that the kernel has at once, and writes; threads are 8 of each at most.
  unsigned depth = 64;
  // With io_uring no more are added to so many bytes of either, or to what the disk moves in 2 ms,
  // where that is more (bytes_at_once.h).
  std::size_t bytes_at_once = 4 << 20;
  // Bytes that one system call is asked for at most; the kernel's own limit is just below 2 GiB.
  std::size_t largest_call = std::size_t{1} << 30;
  // Tests: the errno with which the kernel is said to refuse io_uring and O_DIRECT; 0: ask it.
  int refuse_uring = 0;
  int refuse_direct = 0;
};

// What it falls back to is said once in the log.
std::unique_ptr<BlockIo> make_block_io(const BlockIoOptions& options = {});
// kMapped, whose temporary files are those of `temporary`, which must outlive it. No completion of
// theirs may submit to it when it is destroyed.
std::unique_ptr<BlockIo> make_mapped_block_io(BlockIo& temporary);

// Waits for requests: one completion() for each. One thread waits.
class BlockWait {
 public:
  BlockWait() = default;
  BlockWait(const BlockWait&) = delete;
  BlockWait& operator=(const BlockWait&) = delete;
  ~BlockWait();  // waits
  // Every one handed out must be called.
  BlockCompletion completion();
  // Returns when all have been called; throws the first error among them, once.
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable all_done_;
  std::size_t pending_ = 0;
  std::exception_ptr error_;
};

}  // namespace ooc
