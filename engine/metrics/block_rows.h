// The rows of a vertex tensor for whoever looks at them one by one, such as a metric: some blocks
// at a time, in memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "storage/base/aligned_vector.h"
#include "storage/stores/tensor_store.h"

namespace ooc {

// One thread.
class BlockRows {
 public:
  // Copies blocks [first_block, end_block), row-major without padding, to `rows`.
  using Read =
      std::function<void(std::int64_t first_block, std::int64_t end_block, std::byte* rows)>;
  // `read` is asked for I/O chunks of `io_chunk_blocks` blocks.
  BlockRows(DType dtype, const TensorLayout& layout, std::int64_t io_chunk_blocks, Read read);

  DType dtype() const { return dtype_; }
  const TensorLayout& layout() const { return layout_; }
  // Of what it holds, once it has read.
  std::int64_t memory_bytes() const;
  // A block's rows, row-major without padding, until the next call. Each I/O chunk is read once if
  // blocks are asked for in order.
  const void* block(std::int64_t block);
  // Copies one row, from the I/O chunk at hand or a new one.
  void copy_row(std::int64_t row, void* to);

 private:
  std::size_t row_bytes() const;

  DType dtype_;
  TensorLayout layout_;
  std::int64_t io_chunk_blocks_;
  Read read_;
  std::int64_t io_chunk_ = -1;  // at hand
  AlignedVector<std::byte> rows_;
};

// Of a store, which outlives it; adds what it reads to `bytes_read`. IoError, DataError.
BlockRows stored_rows(const TensorStore& store, std::int64_t& bytes_read);

}  // namespace ooc
