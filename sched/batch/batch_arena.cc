#include "sched/batch/batch_arena.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc {
namespace {

constexpr std::int64_t kAlignment = 64, kSlotAlignment = 4096;

std::int64_t slice_bytes(const Value& value, std::int64_t rows, std::int64_t slice) {
  const TensorLayout layout{rows, value.cols, rows};
  return round_up(
      rows * layout.slice_stride(slice) * static_cast<std::int64_t>(dtype_bytes(value.dtype)),
      kAlignment);
}

// The vertex values that a stage makes.
template <class Visit>
void for_each_made(const Stage& stage, Visit&& visit) {
  if (stage.propagation) {
    for (const EdgeFold& fold : stage.propagation->folds) {
      for (const ValueId id : fold.accumulators) visit(id);
    }
  }
  for (const RowStep& step : stage.steps) {
    for (const ValueId id : step.outputs) visit(id);
  }
}

}  // namespace

std::int64_t batch_rows_bytes(const Value& value, std::int64_t rows) {
  const std::int64_t slices = ceil_div(value.cols, kSliceWidth);
  return (slices - 1) * slice_bytes(value, rows, 0) + slice_bytes(value, rows, slices - 1);
}

SlicedRows place_batch_rows(const Value& value, std::int64_t rows, std::byte* data) {
  const std::int64_t slices = ceil_div(value.cols, kSliceWidth);
  const std::int64_t stride = slice_bytes(value, rows, 0);
  return {data, stride, data + (slices - 1) * stride};
}

SlicedRows rows_from(const Value& value, const SlicedRows& rows, std::int64_t first_row) {
  const TensorLayout layout{first_row, value.cols, first_row};
  const std::int64_t slices = layout.slice_count();
  const auto bytes = static_cast<std::int64_t>(dtype_bytes(value.dtype));
  SlicedRows from = rows;
  if (slices > 1) from.first += first_row * kSliceWidth * bytes;
  from.last += first_row * layout.slice_stride(slices - 1) * bytes;
  return from;
}

BatchArena::BatchArena(const BatchProgram& program, const Lifetimes& lives) : program_(program) {
  const std::vector<ValueId>& outputs = program.program.outputs;
  for (std::size_t i = 0; i < program.program.stages.size(); ++i) {
    const int stage = static_cast<int>(i);
    std::vector<ValueId> made;
    for_each_made(program.program.stages[i], [&](ValueId id) {
      if (value(id).kind == ValueKind::kVertex && lives.in_memory.contains(id)) made.push_back(id);
    });
    // The largest chooses first.
    std::stable_sort(made.begin(), made.end(),
                     [&](ValueId a, ValueId b) { return estimated_bytes(a) > estimated_bytes(b); });
    for (const ValueId id : made) {
      const bool stays = std::find(outputs.begin(), outputs.end(), id) != outputs.end();
      Slot& slot = choose_slot(stage, estimated_bytes(id));
      slot.values.push_back(id);
      slot.estimated = std::max(slot.estimated, estimated_bytes(id));
      slot.last = stays ? std::numeric_limits<int>::max()
                        : std::max(lives.last[static_cast<std::size_t>(id)], stage);
    }
  }
}

const Value& BatchArena::value(ValueId id) const {
  return program_.program.values[static_cast<std::size_t>(id)];
}

// Of a batch whose levels grow as fan-outs have them grow.
double BatchArena::estimated_bytes(ValueId id) const {
  constexpr double kGrowth = 10;
  const int level = program_.memory_level[static_cast<std::size_t>(id)];
  return static_cast<double>(batch_rows_bytes(value(id), 1024)) * std::pow(kGrowth, level);
}

// A free one, the smallest that is large enough, else the largest; or a new one.
BatchArena::Slot& BatchArena::choose_slot(int stage, double bytes) {
  Slot* found = nullptr;
  const auto is_better = [&](const Slot& slot) {
    if (found == nullptr) return true;
    const bool fits = slot.estimated >= bytes, other_fits = found->estimated >= bytes;
    if (fits != other_fits) return fits;
    return fits ? slot.estimated < found->estimated : slot.estimated > found->estimated;
  };
  for (Slot& slot : slots_) {
    if (slot.last < stage && is_better(slot)) found = &slot;
  }
  return found != nullptr ? *found : slots_.emplace_back();
}

std::int64_t BatchArena::rows_in_memory(ValueId id,
                                        std::span<const std::int64_t> level_rows) const {
  const int level = program_.memory_level[static_cast<std::size_t>(id)];
  OOC_CHECK(level >= 0 && level < std::ssize(level_rows));
  return level_rows[static_cast<std::size_t>(level)];
}

std::int64_t BatchArena::slot_bytes(const Slot& slot,
                                    std::span<const std::int64_t> level_rows) const {
  std::int64_t bytes = 0;
  for (const ValueId id : slot.values) {
    bytes = std::max(bytes, batch_rows_bytes(value(id), rows_in_memory(id, level_rows)));
  }
  return round_up(bytes, kSlotAlignment);
}

std::int64_t BatchArena::bytes(std::span<const std::int64_t> level_rows) const {
  std::int64_t bytes = 0;
  for (const Slot& slot : slots_) bytes += slot_bytes(slot, level_rows);
  return bytes;
}

std::vector<SlicedRows> BatchArena::place(std::span<const std::int64_t> level_rows,
                                          std::byte* data) const {
  std::vector<SlicedRows> places(program_.program.values.size());
  for (const Slot& slot : slots_) {
    for (const ValueId id : slot.values) {
      places[static_cast<std::size_t>(id)] =
          place_batch_rows(value(id), rows_in_memory(id, level_rows), data);
    }
    data += slot_bytes(slot, level_rows);
  }
  return places;
}

}  // namespace ooc
