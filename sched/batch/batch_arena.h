// Where the vertex values of a batch lie in one range of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/spec/matrix_view.h"
#include "sched/batch/batch_program.h"
#include "sched/plan/passes/stages.h"

namespace ooc {

// Rows of a value beside each other, slice after slice (storage/format/tensor_layout.h); each slice
// is padded to 64 bytes.
std::int64_t batch_rows_bytes(const Value& value, std::int64_t rows);
SlicedRows place_batch_rows(const Value& value, std::int64_t rows, std::byte* data);
// From this row on.
SlicedRows rows_from(const Value& value, const SlicedRows& rows, std::int64_t first_row);

// Values that are never alive at once share slots. Which do is chosen once, for any batch: a slot
// is as large as the largest of its values, so that bytes() grows with the rows of any level.
class BatchArena {
 public:
  // `program` outlives it. `lives`: of the lowered program.
  BatchArena(const BatchProgram& program, const Lifetimes& lives);

  std::int64_t bytes(std::span<const std::int64_t> level_rows) const;
  // By value: where row 0 lies, of those that have a place.
  std::vector<SlicedRows> place(std::span<const std::int64_t> level_rows, std::byte* data) const;
  std::int64_t rows_in_memory(ValueId id, std::span<const std::int64_t> level_rows) const;

 private:
  struct Slot {
    std::vector<ValueId> values;
    int last = -1;         // stage that reads one of them
    double estimated = 0;  // bytes
  };

  const Value& value(ValueId id) const;
  double estimated_bytes(ValueId id) const;
  Slot& choose_slot(int stage, double bytes);
  std::int64_t slot_bytes(const Slot& slot, std::span<const std::int64_t> level_rows) const;

  const BatchProgram& program_;
  std::vector<Slot> slots_;
};

}  // namespace ooc
