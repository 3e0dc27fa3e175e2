// Rows of a result that come one after the other, kept where there is room for any number of them.
#pragma once

#include <cstdint>
#include <string>

#include "engine/metrics/block_rows.h"
#include "kernels/device/host_buffer.h"
#include "kernels/spec/matrix_view.h"
#include "storage/io/block_file.h"
#include "storage/stores/scratch_tensor.h"

namespace ooc {

// One thread.
class CollectedRows {
 public:
  // A file in `directory` for so many rows, gone with this: IoError where there is no room. `io`
  // outlives it.
  CollectedRows(BlockIo& io, const std::string& directory, DType dtype, std::int64_t rows,
                std::int64_t cols);

  // The first `count` of these rows come next. IoError.
  void append(const MatrixView& rows, std::int64_t count);
  // All of them, once all have come. Lives no longer than this; adds what it reads to `bytes_read`.
  BlockRows rows(std::int64_t& bytes_read) const { return stored_rows(tensor_, bytes_read); }

  // Of memory, beside what rows() takes.
  static std::int64_t memory_bytes(DType dtype, std::int64_t rows, std::int64_t cols);
  static std::int64_t file_bytes(DType dtype, std::int64_t rows, std::int64_t cols);  // at most

 private:
  std::int64_t chunk_rows() const {
    return tensor_.io_chunk_blocks() * tensor_.layout().block_rows;
  }
  std::byte* slice(std::int64_t slice) const;
  void write_chunk();

  ScratchTensor tensor_;
  HostBuffer buffer_;          // an I/O chunk, slice after slice
  std::int64_t io_chunk_ = 0;  // at hand
  std::int64_t filled_ = 0;    // rows of it
};

}  // namespace ooc
