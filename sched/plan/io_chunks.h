// How rows of a planned tensor lie in I/O chunks, in storage and in memory.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "sched/plan/plan.h"

namespace ooc {

// Bytes that an I/O chunk of a slice takes in storage and memory: a multiple of 4 KiB. The last I/O
// chunk has the rows that are left.
std::int64_t io_chunk_bytes(const PlannedTensor& tensor, std::int64_t io_chunk, std::int64_t slice);
std::int64_t io_chunk_count(const PlannedTensor& tensor);
// Of the rows in an I/O chunk, unpadded: what counts as moved.
std::int64_t io_chunk_payload(const PlannedTensor& tensor, std::int64_t io_chunk,
                              std::int64_t slice);
// Blocks of the tensor in one of the graph's.
std::int64_t blocks_in(const EdgeLayout& edges, const PlannedTensor& tensor);
// Of a tensor that edges read span by span, the blocks that come in at once: whole I/O chunks,
// whole spans.
std::int64_t streamed_blocks(const EdgeLayout& edges, const PlannedTensor& tensor);
// Spans that devices of a ring pass on at once, of all that a pass streams: whole items of each.
template <class Uses>
std::int64_t ring_item_spans(const EdgeLayout& edges, const Uses& uses,
                             const std::vector<PlannedTensor>& tensors) {
  std::int64_t spans = 1;
  for (const auto& use : uses) {
    if (use.role != UseRole::kStreamed) continue;
    const PlannedTensor& tensor = tensors[static_cast<std::size_t>(use.tensor)];
    spans = std::lcm(spans,
                     streamed_blocks(edges, tensor) * tensor.layout.block_rows / edges.span_rows);
  }
  return spans;
}
// What the memory of a use without a tensor is laid out as.
PlannedTensor dst_range_tensor(const EdgeLayout& edges, const Value& value);

// Rows that lie beside each other from a block on, slices first_slice to end_slice: the layout of
// ranges and of kResident and kAccumulator memory.
std::int64_t rows_bytes(const PlannedTensor& tensor, std::int64_t first_block,
                        std::int64_t end_block, std::int64_t first_slice, std::int64_t end_slice);
// Where a row of a slice begins in it; first_block is a multiple of the I/O chunk.
std::int64_t row_offset(const PlannedTensor& tensor, std::int64_t first_block,
                        std::int64_t end_block, std::int64_t first_slice, std::int64_t row,
                        std::int64_t slice);

// Of a tensor's blocks [first, end): rows unpadded.
std::int64_t payload_bytes(const PlannedTensor& tensor, std::int64_t first, std::int64_t end);

}  // namespace ooc
