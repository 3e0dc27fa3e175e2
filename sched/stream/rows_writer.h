// The rows that a use of a pass makes, on their way: into the resident range that holds them, and
// to storage where the plan stores them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "sched/stream/rows_loader.h"
#include "sched/workers/driver.h"

namespace ooc {

// An I/O chunk's rows get a place, are filled in, and with the last of them the I/O chunk is there
// or on its way to storage. All of it under the driver's lock. Of std::make_shared alone: it lives
// on until its writes are done.
class RowsWriter : public std::enable_shared_from_this<RowsWriter> {
 public:
  // I/O chunks that no resident range holds take a slot.
  RowsWriter(Driver& driver, const TensorAccess& access, Slots slots);
  // They lie in `dst_range`, of these slices.
  RowsWriter(Driver& driver, const TensorAccess& access, const RowsPlace& dst_range,
             std::int64_t end_slice);

  // Whether there is a place for the rows [row, end); it is theirs from then on.
  bool ready(std::int64_t row, std::int64_t end);
  // Of rows that have it; of a destination range's, also before.
  std::byte* at(std::int64_t row, std::int64_t slice) const;
  // Each row once.
  void finish(std::int64_t row, std::int64_t end);

 private:
  struct IoChunk {
    std::byte* slot = nullptr;  // null: it has none
    std::int64_t rows_left = 0;
    std::int64_t writes = 0;
  };
  bool open(std::int64_t io_chunk);
  int range(std::int64_t io_chunk) const {
    return access_.range(io_chunk * access_.tensor->io_chunk_blocks);
  }
  bool in_dst_range(std::int64_t io_chunk) const {
    return dst_range_.data != nullptr && range(io_chunk) < 0;
  }
  RowsPlace place_of(std::int64_t io_chunk) const;
  std::span<std::byte> memory_of(std::int64_t io_chunk, std::int64_t slice) const;
  bool is_busy(std::int64_t io_chunk) const;
  void finish_io_chunk(std::int64_t io_chunk);
  void write(std::int64_t io_chunk);
  void pack(std::int64_t index, std::int64_t slice, std::byte* rows);
  void submit(std::int64_t index, std::int64_t slice, std::byte* rows, std::int64_t zeros);
  void wrote(std::int64_t io_chunk, std::int64_t slice);
  void close(std::int64_t io_chunk);
  std::int64_t io_chunk_rows() const {
    return access_.tensor->io_chunk_blocks * access_.tensor->layout.block_rows;
  }

  Driver& driver_;
  TensorAccess access_;
  std::int64_t first_slice_ = 0, end_slice_ = 0;
  RowsPlace dst_range_;
  Slots slots_;
  std::map<std::int64_t, IoChunk> io_chunks_;  // that are open
};

}  // namespace ooc
