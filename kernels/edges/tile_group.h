// The CPU's unit of edge work: one destination block's tiles, one slice of what is slice-local.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/edges/edge_batch.h"
#include "kernels/spec/edge_program.h"
#include "storage/format/tensor_layout.h"

namespace ooc::cpu {

// A destination block's tiles of a window, in span order, for one slice of what is slice-local;
// where operands lie, by operand.
struct TileGroup {
  struct Entry {
    TileView tile;
    const SlicedRows* streamed = nullptr;
  };
  std::vector<Entry> entries;
  std::int64_t rows = 0;
  const SlicedRows* resident = nullptr;
  const SlicedRows* accumulators = nullptr;
  const std::vector<void*>& matrices;
  std::int64_t first_slice = 0;  // of the window
  std::int64_t slice = 0;
  const StepSeed& state;
  std::byte* scratch = nullptr;

  // A slice of an operand that is taken slice by slice.
  std::byte* at_hand(const SlicedRows& operand, std::int64_t cols, std::int64_t wanted) const {
    return operand.slice(wanted - first_slice, ceil_div(cols, kSliceWidth) - first_slice);
  }
};

// Null: every edge is taken.
const std::uint8_t* splits_of(const EdgeProgram& program, const TileGroup::Entry& entry);

// A batch in scratch; `at` goes after it.
EdgeBatch place_batch(const EdgeProgram& program, std::byte*& at);

// Any program, batch after batch: loads, steps, folds.
template <class T>
void run_batches(const EdgeProgram& program, const std::vector<RowKernel>& kernels,
                 const TileGroup& group);

}  // namespace ooc::cpu
