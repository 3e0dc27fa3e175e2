#include "engine/train/block_rows.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "storage/stores/scratch_tensor.h"

namespace ooc {

BlockRows::BlockRows(DType dtype, const TensorLayout& layout, std::int64_t unit_blocks, Read read)
    : dtype_(dtype), layout_(layout), unit_blocks_(unit_blocks), read_(std::move(read)) {}

std::size_t BlockRows::row_bytes() const {
  return static_cast<std::size_t>(layout_.cols) * dtype_bytes(dtype_);
}

std::int64_t BlockRows::memory_bytes() const {
  const std::int64_t rows = std::min(unit_blocks_ * layout_.block_rows, layout_.rows);
  return rows * static_cast<std::int64_t>(row_bytes());
}

const void* BlockRows::block(std::int64_t block) {
  const std::int64_t unit = block / unit_blocks_, first = unit * unit_blocks_;
  if (unit != unit_) {
    rows_.resize(static_cast<std::size_t>(memory_bytes()));
    unit_ = -1;
    read_(first, std::min(first + unit_blocks_, layout_.block_count()), rows_.data());
    unit_ = unit;
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

// One slice of a unit at a time, in a buffer as storage wants it.
void read_unit(const TensorStore& store, std::int64_t unit, AlignedVector<std::byte>& buffer,
               std::byte* rows, std::int64_t& bytes_read) {
  const TensorLayout& layout = store.layout();
  const std::size_t element = dtype_bytes(store.dtype());
  const std::int64_t first = unit * store.unit_blocks() * layout.block_rows;
  const std::int64_t count = std::min(store.unit_blocks() * layout.block_rows, layout.rows - first);
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    const std::uint64_t bytes =
        unit_payload_bytes(layout, store.dtype(), store.unit_blocks(), unit, slice);
    buffer.resize(io_aligned(bytes));
    BlockWait wait;
    store.read(unit, slice, buffer.data(), wait.completion());
    wait.wait();
    store.settle(unit, slice, buffer.data());
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
  return {store.dtype(), store.layout(), store.unit_blocks(),
          [&store, &bytes_read, buffer](std::int64_t first_block, std::int64_t, std::byte* rows) {
            read_unit(store, first_block / store.unit_blocks(), *buffer, rows, bytes_read);
          }};
}

}  // namespace ooc
