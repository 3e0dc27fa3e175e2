#include "tests/support/plan_parts.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sched/plan/io_chunks.h"
#include "storage/format/tensor_layout.h"
#include "tests/support/device_memory.h"

namespace ooc::test {
namespace {

bool pins(const ResidentRange& range, int tensor, std::int64_t block, int pass) {
  const bool from = range.first_pass <= pass, until = pass <= range.last_pass;
  const bool alive = range.first_pass <= range.last_pass ? from && until : from || until;
  return alive && range.tensor == tensor && block >= range.first_block && block < range.end_block;
}

// What a use without a tensor has of a destination range: its rows alone, block by block.
PlannedTensor own_rows(const EdgeLayout& edges, const Value& value) {
  PlannedTensor tensor;
  tensor.name = value.name;
  tensor.dtype = value.dtype;
  tensor.layout = {edges.vertices, value.cols, edges.block_rows};
  tensor.io_chunk_blocks = 1;
  return tensor;
}

}  // namespace

void check_dst_ranges(const Program& program, const Plan& plan, const EdgeLayout& edges, int index,
                      const Pass& pass) {
  const std::int64_t blocks = edges.block_count();
  for (const TensorUse& use : pass.uses) {
    if (use.role != UseRole::kResident && use.role != UseRole::kAccumulator) continue;
    const PlannedTensor tensor =
        use.tensor >= 0 ? plan.tensors[static_cast<std::size_t>(use.tensor)]
                        : own_rows(edges, program.values[static_cast<std::size_t>(use.value)]);
    const bool sliced = tensor.layout.cols == pass.slice_local_cols;
    const std::int64_t slices = sliced ? pass.slices_at_once : tensor.layout.slice_count();
    const auto kept = [&](std::int64_t block) {
      return std::any_of(
          plan.devices[0].ranges.begin(), plan.devices[0].ranges.end(),
          [&](const ResidentRange& range) { return pins(range, use.tensor, block, index); });
    };
    const std::int64_t io_chunk = tensor.io_chunk_blocks;
    const std::int64_t times = edges.block_rows / tensor.layout.block_rows;
    for (std::int64_t dst_range = 0; dst_range < blocks; dst_range += pass.dst_range_blocks) {
      std::int64_t end = std::min(dst_range + pass.dst_range_blocks, blocks) * times;
      end = std::min(ceil_div(end, io_chunk) * io_chunk, tensor.layout.block_count());
      std::int64_t first = dst_range * times / io_chunk * io_chunk;  // ranges hold the first ones
      while (use.tensor >= 0 && first < end && kept(first)) first += io_chunk;
      const std::int64_t bytes = first < end ? rows_bytes(tensor, first, end, 0, slices) : 0;
      INFO(tensor.name << " from block " << dst_range << " in pass " << index << " " << pass.name);
      REQUIRE(pass.dst_ranges_at_once * bytes <= memory_of(plan, pass, use).bytes);
    }
  }
}

}  // namespace ooc::test
