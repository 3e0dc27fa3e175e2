#include "engine/infer/collected_rows.h"

#include <algorithm>
#include <cstring>

#include "storage/base/errors.h"

namespace ooc {
namespace {

TensorLayout layout_of(std::int64_t rows, std::int64_t cols) {
  return {rows, cols, kDefaultBlockRows};
}

// Of a whole I/O chunk's slices before this one.
std::int64_t slice_offset(const TensorLayout& layout, DType dtype, std::int64_t io_chunk_blocks,
                          std::int64_t slice) {
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < slice; ++i) {
    offset += static_cast<std::int64_t>(
        io_aligned(io_chunk_payload_bytes(layout, dtype, io_chunk_blocks, 0, i)));
  }
  return offset;
}

}  // namespace

CollectedRows::CollectedRows(BlockIo& io, const std::string& directory, DType dtype,
                             std::int64_t rows, std::int64_t cols)
    : tensor_(io, directory, dtype, layout_of(rows, cols)),
      buffer_(static_cast<std::size_t>(memory_bytes(dtype, rows, cols)), "rows of a result") {}

std::int64_t CollectedRows::memory_bytes(DType dtype, std::int64_t rows, std::int64_t cols) {
  const TensorLayout layout = layout_of(rows, cols);
  return slice_offset(layout, dtype, scratch_io_chunk_blocks(layout, dtype), layout.slice_count());
}

std::int64_t CollectedRows::file_bytes(DType dtype, std::int64_t rows, std::int64_t cols) {
  const TensorLayout layout = layout_of(rows, cols);
  return ceil_div(layout.block_count(), scratch_io_chunk_blocks(layout, dtype)) *
         memory_bytes(dtype, rows, cols);
}

std::byte* CollectedRows::slice(std::int64_t slice) const {
  return buffer_.data() +
         slice_offset(tensor_.layout(), tensor_.dtype(), tensor_.io_chunk_blocks(), slice);
}

void CollectedRows::append(const MatrixView& rows, std::int64_t count) {
  const TensorLayout& layout = tensor_.layout();
  const auto element = static_cast<std::int64_t>(dtype_bytes(rows.dtype));
  OOC_CHECK(rows.cols == layout.cols && rows.dtype == tensor_.dtype() && count <= rows.rows);
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t some = std::min(count - done, chunk_rows() - filled_);
    for (std::int64_t i = 0; i < layout.slice_count(); ++i) {
      const std::int64_t row_bytes = layout.slice_stride(i) * element;
      OOC_CHECK(rows.stride(i) == layout.slice_stride(i));
      const std::byte* const from =
          rows.slices.slice(i, layout.slice_count()) + (rows.row_offset + done) * row_bytes;
      std::memcpy(slice(i) + filled_ * row_bytes, from, static_cast<std::size_t>(some * row_bytes));
    }
    filled_ += some;
    done += some;
    const bool is_last = io_chunk_ * chunk_rows() + filled_ == layout.rows;
    if (filled_ == chunk_rows() || is_last) write_chunk();
  }
}

void CollectedRows::write_chunk() {
  BlockWait wait;
  for (std::int64_t i = 0; i < tensor_.layout().slice_count(); ++i) {
    tensor_.write(io_chunk_, i, slice(i), 0, wait.completion());
  }
  wait.wait();
  ++io_chunk_;
  filled_ = 0;
}

}  // namespace ooc
