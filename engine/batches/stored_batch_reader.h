// Batches of a file in any order, each read while the one before is worked on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/device/host_buffer.h"
#include "storage/batches/batch_file.h"
#include "storage/io/block_file.h"
#include "storage/stores/direct_chunk_reader.h"

namespace ooc {

//   reader.begin(order);
//   while (reader.next()) use(reader.batch());
//
// One thread. A chunk is one request; two are in memory, or none where the BlockIo maps the file.
class StoredBatchReader {
 public:
  // Both outlive this. BudgetError where there is no memory.
  StoredBatchReader(BlockIo& io, const BatchFile& file);
  ~StoredBatchReader();  // waits for what is on its way

  // Of memory.
  static std::int64_t buffer_bytes(const BatchFile& file);

  // Begins with these batches, in this order; what was begun before is dropped. The first one is
  // read from now on.
  void begin(std::vector<std::int64_t> batches);
  std::int64_t batches() const { return static_cast<std::int64_t>(order_.size()); }
  // Waits for the next batch, makes it the current one, and begins to read the one after it. False:
  // there is none. IoError and DataError pass through; then only begin() may be called.
  bool next();
  std::int64_t index() const { return next_ - 1; }  // of the current batch, in the order
  // The current one, until next() or begin().
  const BatchView& batch() const { return batch_; }
  std::int64_t bytes_read() const { return bytes_read_; }  // so far

 private:
  struct Slot {
    std::optional<HostBuffer> buffer;  // none: the file is mapped
    const std::byte* data = nullptr;
    std::optional<BlockWait> read;
  };

  Slot& slot(std::int64_t at) { return slots_[static_cast<std::size_t>(at % 2)]; }
  std::uint64_t chunk(std::int64_t at) const {
    return static_cast<std::uint64_t>(order_[static_cast<std::size_t>(at)]);
  }
  void submit(std::int64_t at);
  void drop();

  const BatchFile& file_;
  DirectChunkReader chunks_;
  std::array<Slot, 2> slots_;
  std::vector<std::int64_t> order_;
  std::int64_t next_ = 0;
  BatchView batch_;
  std::int64_t bytes_read_ = 0;
};

}  // namespace ooc
