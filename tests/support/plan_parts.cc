#include "tests/support/plan_parts.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "storage/format/tensor_layout.h"

namespace ooc::test {
namespace {

bool holds(const Piece& piece, int tensor, std::int64_t block, int pass) {
  const bool from = piece.first_pass <= pass, until = pass <= piece.last_pass;
  const bool alive = piece.first_pass <= piece.last_pass ? from && until : from || until;
  return alive && piece.tensor == tensor && block >= piece.first_block && block < piece.end_block;
}

// What a use without a tensor has of a part: its rows alone, block by block.
PlannedTensor own_rows(const EdgeLayout& edges, const Value& value) {
  PlannedTensor tensor;
  tensor.name = value.name;
  tensor.dtype = value.dtype;
  tensor.layout = {edges.vertices, value.cols, edges.block_rows};
  tensor.unit_blocks = 1;
  return tensor;
}

}  // namespace

void check_parts(const Program& program, const Plan& plan, const EdgeLayout& edges, int index,
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
      return std::any_of(plan.pieces.begin(), plan.pieces.end(), [&](const Piece& piece) {
        return holds(piece, use.tensor, block, index);
      });
    };
    const std::int64_t unit = tensor.unit_blocks;
    const std::int64_t times = edges.block_rows / tensor.layout.block_rows;
    for (std::int64_t part = 0; part < blocks; part += pass.part_blocks) {
      std::int64_t end = std::min(part + pass.part_blocks, blocks) * times;
      end = std::min(ceil_div(end, unit) * unit, tensor.layout.block_count());
      std::int64_t first = part * times / unit * unit;  // pieces hold the first ones
      while (use.tensor >= 0 && first < end && kept(first)) first += unit;
      const std::int64_t bytes = first < end ? rows_bytes(tensor, first, end, 0, slices) : 0;
      INFO(tensor.name << " from block " << part << " in pass " << index << " " << pass.name);
      REQUIRE(pass.parts_at_once * bytes <= use.memory.bytes);
    }
  }
}

}  // namespace ooc::test
