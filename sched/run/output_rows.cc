#include "sched/run/output_rows.h"

#include <algorithm>
#include <cstring>

#include "kernels/device/host_buffer.h"
#include "sched/plan/io_chunks.h"
#include "storage/base/errors.h"

namespace ooc {

OutputRows::OutputRows(const OutputPlace& place, RunCounters& counters)
    : at_(place),
      tensor_(place.plan.tensors[static_cast<std::size_t>(place.tensor)]),
      counters_(counters) {}

void OutputRows::copy(std::int64_t first_block, std::int64_t end_block, std::byte* rows) {
  const auto row_bytes = static_cast<std::size_t>(tensor_.layout.cols) * dtype_bytes(tensor_.dtype);
  RowsPlace io_chunk;
  for (std::int64_t block = first_block; block < end_block; ++block) {
    if (block < io_chunk.first_block || block >= io_chunk.end_block) io_chunk = io_chunk_of(block);
    copy_block(io_chunk, block, rows);
    rows += static_cast<std::size_t>(tensor_.layout.rows_of(block)) * row_bytes;
  }
}

// Rows in the host's memory, those of the block's I/O chunk among them.
RowsPlace OutputRows::io_chunk_of(std::int64_t block) {
  const std::int64_t io_chunk = block / tensor_.io_chunk_blocks;
  const int range = at_.residency.find(at_.tensor, block, at_.last_pass);
  if (range >= 0) {
    return at_.backend.host_accessible() ? at_.residency.place(range)
                                         : from_device(io_chunk, range);
  }
  if (at_.host != nullptr) {
    const RowsPlace place = at_.host->find(at_.tensor, io_chunk, at_.last_pass);
    if (place.data != nullptr) return place;
  }
  return from_storage(io_chunk);
}

RowsPlace OutputRows::bounce(std::int64_t io_chunk) {
  if (!buffer_) {
    const std::int64_t bytes =
        rows_bytes(tensor_, 0, tensor_.io_chunk_blocks, 0, tensor_.layout.slice_count());
    buffer_ = std::make_unique<HostBuffer>(static_cast<std::size_t>(bytes), "cpu");
  }
  const std::int64_t first = io_chunk * tensor_.io_chunk_blocks;
  return {buffer_->data(), first,
          std::min(first + tensor_.io_chunk_blocks, tensor_.layout.block_count()), 0};
}

RowsPlace OutputRows::from_device(std::int64_t io_chunk, int range) {
  const RowsPlace to = bounce(io_chunk);
  const RowsPlace from = at_.residency.place(range);
  Queue& queue = at_.backend.queue(QueueKind::kOut);
  for (std::int64_t slice = 0; slice < tensor_.layout.slice_count(); ++slice) {
    const std::int64_t bytes = io_chunk_payload(tensor_, io_chunk, slice);
    counters_.bytes_from_device += bytes;
    const std::int64_t row = to.first_block * tensor_.layout.block_rows;
    queue.copy(to.at(tensor_, row, slice), from.at(tensor_, row, slice),
               static_cast<std::size_t>(bytes));
  }
  queue.wait(queue.record());
  return to;
}

RowsPlace OutputRows::from_storage(std::int64_t io_chunk) {
  OOC_CHECK(at_.stored != nullptr);
  const RowsPlace to = bounce(io_chunk);
  BlockWait wait;
  for (std::int64_t slice = 0; slice < tensor_.layout.slice_count(); ++slice) {
    counters_.bytes_read += io_chunk_payload(tensor_, io_chunk, slice);
    counters_.zeros_read += at_.stored->zeros(io_chunk, slice);
    const std::int64_t row = to.first_block * tensor_.layout.block_rows;
    at_.stored->read(io_chunk, slice, to.at(tensor_, row, slice), wait.completion());
  }
  wait.wait();
  for (std::int64_t slice = 0; slice < tensor_.layout.slice_count(); ++slice) {
    const std::int64_t row = to.first_block * tensor_.layout.block_rows;
    at_.stored->verify_and_decode(io_chunk, slice, to.at(tensor_, row, slice));
  }
  return to;
}

// Without the padding of the slices.
void OutputRows::copy_block(const RowsPlace& place, std::int64_t block, std::byte* rows) const {
  const TensorLayout& layout = tensor_.layout;
  const std::size_t element = dtype_bytes(tensor_.dtype);
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    const std::byte* from = place.at(tensor_, block * layout.block_rows, slice);
    std::byte* to = rows + static_cast<std::size_t>(slice * kSliceWidth) * element;
    for (std::int64_t row = 0; row < layout.rows_of(block); ++row) {
      std::memcpy(to, from, static_cast<std::size_t>(layout.slice_cols(slice)) * element);
      from += static_cast<std::size_t>(layout.slice_stride(slice)) * element;
      to += static_cast<std::size_t>(layout.cols) * element;
    }
  }
}

}  // namespace ooc
