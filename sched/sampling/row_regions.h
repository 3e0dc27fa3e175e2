// The cold rows of every batch, row records beside each other in the order of their vertices: a
// region a batch, in one temporary file that is gone with the object.
//
// It is written in buffers of equal size. A batch has one that is being filled, and those that
// are full and on their way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/device/host_buffer.h"
#include "sched/workers/driver.h"
#include "storage/io/block_file.h"

namespace ooc {

class RowRegions {
 public:
  struct Options {
    std::int64_t buffer_bytes = 0;  // about, of all buffers: for two a batch
    std::int64_t rows_at_once = 0;  // that are reserved together, at most
    std::string directory;          // of the file
  };
  // `rows`: by batch. BudgetError and IoError where there is no memory or no space for them. `io`
  // outlives it, and it the driver's work.
  RowRegions(BlockIo& io, std::span<const std::int64_t> rows, std::size_t record_bytes,
             const Options& options);

  static constexpr std::int64_t kLeastBuffer = 64 << 10;
  // Of buffers, beside two a batch: what rows_at_once fill.
  static std::int64_t buffer_bytes(std::int64_t bytes, std::int64_t batches);
  static std::int64_t buffers(std::int64_t batches, std::int64_t bytes_at_once,
                              std::int64_t buffer_bytes);

  bool in_file() const { return file_ != nullptr; }  // else there is no row
  // Of the regions, each at a multiple of kIoAlignment.
  std::int64_t bytes() const { return offsets_.back(); }
  std::int64_t region_bytes(std::int64_t batch) const;  // without what aligns them
  std::int64_t bytes_written() const { return bytes_written_; }

  // Rows of every batch are reserved in order, then written, once each, in any order by any thread,
  // then told of. Under the driver's lock: whether there are buffers for so many rows of each batch
  // (reserve()), and the index of the first one of them.
  bool has_room(std::span<const std::uint32_t> rows) const;
  std::uint32_t reserve(std::int64_t batch, std::uint32_t rows);
  // Where a reserved row lies; null: in two buffers.
  std::byte* row(std::int64_t batch, std::uint32_t index) const {
    const std::size_t offset = index * record_bytes_;
    const auto at = static_cast<std::size_t>(batch);
    const std::size_t inside = offset & (buffer_bytes_ - 1);
    if (inside + record_bytes_ > buffer_bytes_) return nullptr;
    return buffers_[first_buffer_[at] + (offset >> shift_)].data + inside;
  }
  void write(std::int64_t batch, std::uint32_t index, const std::byte* record);
  // Any thread: what fills a buffer is submitted.
  void written(Driver& driver, std::int64_t batch, std::uint32_t index, std::uint32_t rows);

  // Once all is written: nothing stays in memory.
  void finish();

  // Of a batch's region, after finish(): submits its reads into `data`, which has room for
  // io_aligned(region_bytes()).
  void read(std::int64_t batch, std::byte* data, BlockWait& wait) const;

 private:
  struct Buffer {
    std::byte* data = nullptr;           // while it is filled or on its way
    std::atomic<std::uint32_t> left{0};  // bytes to be filled
  };
  void open_file(std::span<const std::int64_t> rows, const Options& options);
  std::size_t buffers_until(std::size_t bytes) const {
    return (bytes + buffer_bytes_ - 1) >> shift_;
  }
  void submit(Driver& driver, std::int64_t batch, std::size_t buffer);

  BlockIo& io_;
  std::size_t record_bytes_;
  std::vector<std::int64_t> offsets_;    // of regions, and their end
  std::vector<std::int64_t> rows_;       // by batch
  std::vector<std::uint32_t> reserved_;  // rows, by batch
  std::size_t buffer_bytes_ = 0;         // a power of two
  int shift_ = 0;
  std::vector<std::size_t> first_buffer_;  // by batch
  std::vector<Buffer> buffers_;            // of all regions
  std::optional<HostBuffer> memory_;       // of buffers
  std::vector<std::byte*> free_;           // buffers' memory
  std::unique_ptr<BlockFile> file_;
  std::atomic<std::int64_t> bytes_written_{0};
};

}  // namespace ooc
