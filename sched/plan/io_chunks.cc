#include "sched/plan/io_chunks.h"

#include <algorithm>
#include <numeric>

#include "storage/io/block_file.h"

namespace ooc {

namespace {

std::int64_t aligned(std::int64_t bytes) {
  return static_cast<std::int64_t>(io_aligned(static_cast<std::uint64_t>(bytes)));
}

}  // namespace

std::int64_t payload_bytes(const PlannedTensor& tensor, std::int64_t first, std::int64_t end) {
  const std::int64_t block_rows = tensor.layout.block_rows;
  const std::int64_t rows = std::min(end * block_rows, tensor.layout.rows) - first * block_rows;
  std::int64_t stride = 0;
  for (std::int64_t slice = 0; slice < tensor.layout.slice_count(); ++slice) {
    stride += tensor.layout.slice_stride(slice);
  }
  return std::max<std::int64_t>(rows, 0) * stride *
         static_cast<std::int64_t>(dtype_bytes(tensor.dtype));
}

namespace {

std::int64_t row_bytes(const TensorLayout& layout, DType dtype, std::int64_t slice) {
  return layout.slice_stride(slice) * static_cast<std::int64_t>(dtype_bytes(dtype));
}

std::int64_t io_chunk_rows(const PlannedTensor& tensor, std::int64_t io_chunk) {
  const std::int64_t rows = tensor.io_chunk_blocks * tensor.layout.block_rows;
  return std::min(rows, tensor.layout.rows - io_chunk * rows);
}

// I/O chunks [first, end) of a slice; only the tensor's last one is smaller.
std::int64_t io_chunks_bytes(const PlannedTensor& tensor, std::int64_t first, std::int64_t end,
                             std::int64_t slice) {
  if (first >= end) return 0;
  return (end - first - 1) * io_chunk_bytes(tensor, first, slice) +
         io_chunk_bytes(tensor, end - 1, slice);
}

}  // namespace

std::int64_t io_chunk_count(const PlannedTensor& tensor) {
  return ceil_div(tensor.layout.block_count(), tensor.io_chunk_blocks);
}

std::int64_t io_chunk_payload(const PlannedTensor& tensor, std::int64_t io_chunk,
                              std::int64_t slice) {
  return io_chunk_rows(tensor, io_chunk) * row_bytes(tensor.layout, tensor.dtype, slice);
}

std::int64_t io_chunk_bytes(const PlannedTensor& tensor, std::int64_t io_chunk,
                            std::int64_t slice) {
  return aligned(io_chunk_payload(tensor, io_chunk, slice));
}

std::int64_t blocks_in(const EdgeLayout& edges, const PlannedTensor& tensor) {
  return edges.block_rows / tensor.layout.block_rows;
}

std::int64_t streamed_blocks(const EdgeLayout& edges, const PlannedTensor& tensor) {
  return std::lcm(tensor.io_chunk_blocks, edges.span_rows / tensor.layout.block_rows);
}

PlannedTensor dst_range_tensor(const EdgeLayout& edges, const Value& value) {
  PlannedTensor tensor;
  tensor.name = value.name;
  tensor.layout = {edges.vertices, value.cols, edges.block_rows};
  tensor.dtype = value.dtype;
  return tensor;
}

std::int64_t rows_bytes(const PlannedTensor& tensor, std::int64_t first_block,
                        std::int64_t end_block, std::int64_t first_slice, std::int64_t end_slice) {
  const std::int64_t first = first_block / tensor.io_chunk_blocks;
  const std::int64_t end = ceil_div(end_block, tensor.io_chunk_blocks);
  std::int64_t bytes = 0;
  for (std::int64_t slice = first_slice; slice < end_slice; ++slice) {
    bytes += io_chunks_bytes(tensor, first, end, slice);
  }
  return bytes;
}

std::int64_t row_offset(const PlannedTensor& tensor, std::int64_t first_block,
                        std::int64_t end_block, std::int64_t first_slice, std::int64_t row,
                        std::int64_t slice) {
  const std::int64_t rows = tensor.io_chunk_blocks * tensor.layout.block_rows;  // of an I/O chunk
  const std::int64_t io_chunk = row / rows;
  return rows_bytes(tensor, first_block, end_block, first_slice, slice) +
         io_chunks_bytes(tensor, first_block / tensor.io_chunk_blocks, io_chunk, slice) +
         (row - io_chunk * rows) * row_bytes(tensor.layout, tensor.dtype, slice);
}

}  // namespace ooc
