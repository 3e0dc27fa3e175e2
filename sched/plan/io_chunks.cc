// How rows lie in units: the arithmetic of plan.h.
#include <algorithm>
#include <numeric>

#include "sched/plan/plan.h"
#include "storage/io/block_file.h"

namespace ooc {

namespace {

std::int64_t aligned(std::int64_t bytes) {
  return static_cast<std::int64_t>(io_aligned(static_cast<std::uint64_t>(bytes)));
}

}  // namespace

bool lives_in(const Piece& piece, int pass) {
  return piece.first_pass <= piece.last_pass ? piece.first_pass <= pass && pass <= piece.last_pass
                                             : piece.first_pass <= pass || pass <= piece.last_pass;
}

int pass_count(const Plan& plan) {
  std::size_t count = 0;
  for (const Section& section : plan.sections) count += section.passes.size();
  return static_cast<int>(count);
}

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

std::int64_t worker_scratch_bytes(const Pass& pass) {
  return aligned(std::max(pass.scratch_bytes, pass.edge_scratch_bytes));
}

namespace {

std::int64_t row_bytes(const TensorLayout& layout, DType dtype, std::int64_t slice) {
  return layout.slice_stride(slice) * static_cast<std::int64_t>(dtype_bytes(dtype));
}

std::int64_t unit_rows(const PlannedTensor& tensor, std::int64_t unit) {
  const std::int64_t rows = tensor.unit_blocks * tensor.layout.block_rows;
  return std::min(rows, tensor.layout.rows - unit * rows);
}

// Units [first, end) of a slice; only the tensor's last one is smaller.
std::int64_t units_bytes(const PlannedTensor& tensor, std::int64_t first, std::int64_t end,
                         std::int64_t slice) {
  if (first >= end) return 0;
  return (end - first - 1) * unit_bytes(tensor, first, slice) + unit_bytes(tensor, end - 1, slice);
}

}  // namespace

std::int64_t unit_count(const PlannedTensor& tensor) {
  return ceil_div(tensor.layout.block_count(), tensor.unit_blocks);
}

std::int64_t unit_payload(const PlannedTensor& tensor, std::int64_t unit, std::int64_t slice) {
  return unit_rows(tensor, unit) * row_bytes(tensor.layout, tensor.dtype, slice);
}

std::int64_t unit_bytes(const PlannedTensor& tensor, std::int64_t unit, std::int64_t slice) {
  return aligned(unit_payload(tensor, unit, slice));
}

std::int64_t blocks_in(const EdgeLayout& edges, const PlannedTensor& tensor) {
  return edges.block_rows / tensor.layout.block_rows;
}

std::int64_t streamed_blocks(const EdgeLayout& edges, const PlannedTensor& tensor) {
  return std::lcm(tensor.unit_blocks, edges.span_rows / tensor.layout.block_rows);
}

PlannedTensor part_tensor(const EdgeLayout& edges, const Value& value) {
  PlannedTensor tensor;
  tensor.name = value.name;
  tensor.layout = {edges.vertices, value.cols, edges.block_rows};
  tensor.dtype = value.dtype;
  return tensor;
}

std::int64_t rows_bytes(const PlannedTensor& tensor, std::int64_t first_block,
                        std::int64_t end_block, std::int64_t first_slice, std::int64_t end_slice) {
  const std::int64_t first = first_block / tensor.unit_blocks;
  const std::int64_t end = ceil_div(end_block, tensor.unit_blocks);
  std::int64_t bytes = 0;
  for (std::int64_t slice = first_slice; slice < end_slice; ++slice) {
    bytes += units_bytes(tensor, first, end, slice);
  }
  return bytes;
}

std::int64_t row_offset(const PlannedTensor& tensor, std::int64_t first_block,
                        std::int64_t end_block, std::int64_t first_slice, std::int64_t row,
                        std::int64_t slice) {
  const std::int64_t rows = tensor.unit_blocks * tensor.layout.block_rows;  // of a unit
  const std::int64_t unit = row / rows;
  return rows_bytes(tensor, first_block, end_block, first_slice, slice) +
         units_bytes(tensor, first_block / tensor.unit_blocks, unit, slice) +
         (row - unit * rows) * row_bytes(tensor.layout, tensor.dtype, slice);
}

bool is_alive(const Piece& piece, int pass) {
  if (piece.first_pass <= piece.last_pass) {
    return piece.first_pass <= pass && pass <= piece.last_pass;
  }
  return pass >= piece.first_pass || pass <= piece.last_pass;
}

}  // namespace ooc
