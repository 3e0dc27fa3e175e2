#include "engine/metrics/block_rows.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "storage/stores/scratch_tensor.h"

namespace ooc {

BlockRows::BlockRows(DType dtype, const TensorLayout& layout, std::int64_t io_chunk_blocks,
                     Read read)
    : dtype_(dtype), layout_(layout), io_chunk_blocks_(io_chunk_blocks), read_(std::move(read)) {}

std::size_t BlockRows::row_bytes() const {
  return static_cast<std::size_t>(layout_.cols) * dtype_bytes(dtype_);
}

std::int64_t BlockRows::memory_bytes() const {
  const std::int64_t rows = std::min(io_chunk_blocks_ * layout_.block_rows, layout_.rows);
  return rows * static_cast<std::int64_t>(row_bytes());
}

const void* BlockRows::block(std::int64_t block) {
  const std::int64_t io_chunk = block / io_chunk_blocks_, first = io_chunk * io_chunk_blocks_;
  if (io_chunk != io_chunk_) {
    rows_.resize(static_cast<std::size_t>(memory_bytes()));
    io_chunk_ = -1;
    read_(first, std::min(first + io_chunk_blocks_, layout_.block_count()), rows_.data());
    io_chunk_ = io_chunk;
  }
  return rows_.data() +
         static_cast<std::size_t>((block - first) * layout_.block_rows) * row_bytes();
}

void BlockRows::copy_row(std::int64_t row, void* to) {
  const auto* rows = static_cast<const std::byte*>(block(row / layout_.block_rows));
  std::memcpy(to, rows + static_cast<std::size_t>(row % layout_.block_rows) * row_bytes(),
              row_bytes());
}

namespace {

// One slice of an I/O chunk at a time, in a buffer as storage wants it.
void read_io_chunk(const TensorStore& store, std::int64_t io_chunk,
                   AlignedVector<std::byte>& buffer, std::byte* rows, std::int64_t& bytes_read) {
  const TensorLayout& layout = store.layout();
  const std::size_t element = dtype_bytes(store.dtype());
  const std::int64_t first = io_chunk * store.io_chunk_blocks() * layout.block_rows;
  const std::int64_t count =
      std::min(store.io_chunk_blocks() * layout.block_rows, layout.rows - first);
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    const std::uint64_t bytes =
        io_chunk_payload_bytes(layout, store.dtype(), store.io_chunk_blocks(), io_chunk, slice);
    buffer.resize(io_aligned(bytes));
    BlockWait wait;
    store.read(io_chunk, slice, buffer.data(), wait.completion());
    wait.wait();
    store.verify_and_decode(io_chunk, slice, buffer.data());
    bytes_read += static_cast<std::int64_t>(bytes);
    const auto stride = static_cast<std::size_t>(layout.slice_stride(slice)) * element;
    const auto cols = static_cast<std::size_t>(layout.slice_cols(slice)) * element;
    std::byte* to = rows + static_cast<std::size_t>(slice * kSliceWidth) * element;
    for (std::int64_t row = 0; row < count; ++row) {
      std::memcpy(to, buffer.data() + static_cast<std::size_t>(row) * stride, cols);
      to += static_cast<std::size_t>(layout.cols) * element;
    }
  }
}

}  // namespace

BlockRows stored_rows(const TensorStore& store, std::int64_t& bytes_read) {
  auto buffer = std::make_shared<AlignedVector<std::byte>>();
  return {store.dtype(), store.layout(), store.io_chunk_blocks(),
          [&store, &bytes_read, buffer](std::int64_t first_block, std::int64_t, std::byte* rows) {
            read_io_chunk(store, first_block / store.io_chunk_blocks(), *buffer, rows, bytes_read);
          }};
}

}  // namespace ooc
