// The row-wise work of a pass: rows of the destination range at hand through the steps.
#include <algorithm>
#include <utility>

#include "sched/run/pass_run.h"
#include "storage/base/errors.h"

namespace ooc {

// Rows that are taken up at once, with slice pointers at the first one, operand after operand.
struct PassRun::Step {
  std::shared_ptr<DstRange> dst_range;
  std::int64_t row = 0, end = 0;
  std::vector<void*> slices;
  std::vector<const void*> stored;  // likewise, of inputs that are converted
  std::vector<void*> kept;          // and of what is kept in part, where these rows are
  std::int64_t groups_left = 0;     // under the driver's lock
};

std::int64_t PassRun::first_row(const DstRange& dst_range) const {
  return dst_range.first_block * context_.edges.block_rows;
}

std::int64_t PassRun::end_row(const DstRange& dst_range) const {
  return std::min(dst_range.end_block * context_.edges.block_rows, context_.edges.vertices);
}

// Of the next destination range: what it reads as kRows comes after what the one before it did.
void PassRun::begin_rows() {
  const DstRange& dst_range = *rows_.front();
  for (Use& use : uses_) {
    if (use.planned->role != UseRole::kRows) continue;
    const std::int64_t rows = item_rows(use);
    use.dst_range_items = use.next_dst_range_items;
    const StoredRows& kept = use.access.tensor->kept;
    use.next_dst_range_items +=
        use.access.tensor->layout.slice_count() *
        (ceil_div(kept.index(end_row(dst_range)), rows) - kept.index(first_row(dst_range)) / rows);
  }
}

// Under the lock, each time that the driving thread looks. Whether a step began.
bool PassRun::advance_rows() {
  bool began = false;
  while (!rows_.empty()) {
    DstRange& dst_range = *rows_.front();
    if (dst_range.rows_left == 0) {
      rows_.pop_front();
      if (!rows_.empty()) begin_rows();
      continue;
    }
    if (const std::optional<WaitCause> cause = next_lacks(dst_range)) {
      rows_wait_ = *cause;
      break;
    }
    begin_step();
    began = true;
  }
  return began;
}

// Whether advance_rows() would begin a step; rows that it makes may have got their place.
bool PassRun::may_step() { return !rows_.empty() && !next_lacks(*rows_.front()); }

// What the next step of a destination range waits for.
std::optional<WaitCause> PassRun::next_lacks(const DstRange& dst_range) {
  const std::int64_t row = dst_range.next_row,
                     end = std::min(row + pass_.step_rows, end_row(dst_range));
  return row < end ? lacks(dst_range, row, end) : WaitCause::kWorkers;
}

std::int64_t PassRun::item_rows(const Use& use) {
  return use.item_blocks * use.access.tensor->layout.block_rows;
}

std::int64_t PassRun::rows_item(const Use& use, std::int64_t row, std::int64_t slice) const {
  const StoredRows& kept = use.access.tensor->kept;
  const std::int64_t first = kept.index(first_row(*rows_.front()));
  const std::int64_t io_chunk = kept.index(row) / item_rows(use) - first / item_rows(use);
  return use.dst_range_items + io_chunk * use.access.tensor->layout.slice_count() + slice;
}

// While a destination range is folded, half of the tasks are left to its edges.
std::int64_t PassRun::most_tasks() const {
  return tasks_at_once(context_.driver.workers()) / (folds_ ? 2 : 1);
}

// What the rows [row, end) wait for: until everything that the steps touch has a place and is
// there. Nothing: they may begin.
std::optional<WaitCause> PassRun::lacks(const DstRange& dst_range, std::int64_t row,
                                        std::int64_t end) {
  const Driver& driver = context_.driver;
  if (!pass_.steps.empty() && driver.tasks() > most_tasks()) return WaitCause::kWorkers;
  const bool in_window =
      rows_begun_.empty() || (row - *rows_begun_.begin()) / pass_.step_rows <=
                                 steps_ahead(driver.workers(), bound_.groups_per_step);
  if (!in_window) return WaitCause::kWorkers;
  if (pass_.kind == PassKind::kPropagate && !folded(dst_range, row / context_.edges.block_rows)) {
    return WaitCause::kWorkers;
  }
  if (!has_scratch()) return WaitCause::kWrites;
  for (const Use& use : uses_) {
    if (use.planned->role != UseRole::kRows || !use.access.tensor->kept.has(row)) continue;
    for (std::int64_t slice = 0; slice < use.access.tensor->layout.slice_count(); ++slice) {
      if (!use.stream->ready(rows_item(use, row, slice))) return WaitCause::kReads;
    }
  }
  for (Use& use : uses_) {
    const StoredRows& kept = use.access.tensor->kept;
    if (!use.writer || !kept.has(row)) continue;
    const std::int64_t first = kept.index(row);
    if (!use.writer->ready(first, first + end - row)) return WaitCause::kWrites;
  }
  return std::nullopt;
}

// The next one of the destination range whose rows run.
void PassRun::begin_step() {
  const auto step = std::make_shared<Step>();
  step->dst_range = rows_.front();
  DstRange& dst_range = *step->dst_range;
  step->row = dst_range.next_row;
  step->end = dst_range.next_row = std::min(step->row + pass_.step_rows, end_row(dst_range));
  for (Use& use : uses_) {
    const StoredRows& kept = use.access.tensor->kept;
    if (use.planned->role != UseRole::kRows || !kept.has(step->row)) continue;
    const std::int64_t rows = item_rows(use), row = kept.index(step->row);
    if (row % rows != 0 && step->row != first_row(dst_range)) continue;
    const std::int64_t end = std::min(round_up(row + 1, rows), kept.index(end_row(dst_range)));
    for (std::int64_t slice = 0; slice < use.access.tensor->layout.slice_count(); ++slice) {
      use.stream->hold(rows_item(use, step->row, slice), ceil_div(end - row, pass_.step_rows));
    }
  }
  if (pass_.steps.empty()) return finish_step(*step);
  find_operands(*step);
  step->groups_left = ceil_div(step->end - step->row, pass_.group_rows);
  for (std::int64_t group = 0, count = step->groups_left; group < count; ++group) {
    context_.driver.run([this, step, group] { compute_group(*step, group); },
                        [this, step] {
                          if (--step->groups_left == 0) finish_step(*step);
                        });
  }
}

void PassRun::find_operands(Step& step) {
  rows_begun_.insert(step.row);
  const auto find = [&](const std::vector<BoundOperand>& operands, auto& slices) {
    for (const BoundOperand& operand : operands) {
      const Use& use = uses_[operand.use];
      if (!use.access.tensor->kept.has(step.row)) continue;
      for (std::int64_t s = 0; s < use.access.tensor->layout.slice_count(); ++s) {
        slices.push_back(row_address(*step.dst_range, use, step.row, s));
      }
    }
  };
  find(bound_.operands, step.slices);
  find(bound_.converted, step.stored);
  find(bound_.kept, step.kept);
}

// Of rows that are there, or have their place.
std::byte* PassRun::row_address(const DstRange& dst_range, const Use& use, std::int64_t row,
                                std::int64_t slice) const {
  const PlannedTensor& tensor = *use.access.tensor;
  const DstRangeRows& rows = use.dst_ranges[dst_range.place];
  switch (use.planned->role) {
    case UseRole::kRows: {
      const std::int64_t item = rows_item(use, row, slice);
      return use.loader->rows(item, use.stream->data(item))
          .at(tensor, tensor.kept.index(row), slice);
    }
    case UseRole::kResident: {
      if (use.access.is_mapped()) return use.access.mapped.at(tensor, row, slice);
      const int range = use.access.range(row / tensor.layout.block_rows);
      const RowsPlace place = range >= 0 ? context_.residency.place(range) : rows.rows;
      return place.at(tensor, row, slice);
    }
    case UseRole::kOutput:
      return use.writer->at(tensor.kept.index(row), slice);
    case UseRole::kAccumulator:
      return rows.writer->at(row, slice);
    case UseRole::kStreamed:
      break;
  }
  OOC_CHECK(!"streamed rows are found by their span");
  return nullptr;
}

void PassRun::finish_step(const Step& step) {
  for (Use& use : uses_) {
    const StoredRows& kept = use.access.tensor->kept;
    if (!kept.has(step.row)) continue;
    if (use.planned->role == UseRole::kRows) {
      for (std::int64_t slice = 0; slice < use.access.tensor->layout.slice_count(); ++slice) {
        use.stream->release(rows_item(use, step.row, slice));
      }
    }
    const std::int64_t row = kept.index(step.row);
    if (use.writer) use.writer->finish(row, row + step.end - step.row);
    const DstRangeRows& rows = use.dst_ranges[step.dst_range->place];
    if (rows.writer) rows.writer->finish(step.row, step.end);
  }
  rows_begun_.erase(step.row);
  if ((step.dst_range->rows_left -= step.end - step.row) == 0) context_.driver.wake();
}

// Inputs that are stored in another type than the steps read, into the worker's scratch.
void PassRun::convert_inputs(const Step& step, std::int64_t begin, std::int64_t count,
                             std::byte* scratch) {
  auto stored = step.stored.begin();
  auto converted = bound_.converted.begin();
  for (const Scratch& place : pass_.scratch) {
    if (!place.converted) continue;
    const DType from = uses_[converted++->use].access.tensor->dtype;
    const Value& value = section_.value(place.value);
    PlannedTensor group;
    group.layout = {pass_.group_rows, value.cols, pass_.group_rows};
    group.dtype = value.dtype;
    for (std::int64_t slice = 0; slice < group.layout.slice_count(); ++slice) {
      const std::int64_t stride = group.layout.slice_stride(slice);
      const auto* rows = static_cast<const std::byte*>(*stored++) +
                         static_cast<std::size_t>(begin * stride) * dtype_bytes(from);
      context_.backend.widen(
          from, rows, value.dtype,
          scratch + place.offset + scratch_slice_offset(group.layout, value.dtype, slice),
          count * stride);
    }
  }
}

void PassRun::compute_group(const Step& step, std::int64_t index) {
  const std::int64_t begin = index * pass_.group_rows;
  const std::int64_t count = std::min(pass_.group_rows, step.end - step.row - begin);
  std::byte* const scratch = PassRun::scratch();

  GroupOperands operands(*section_.program, bound_);
  operands.add_tensors(step.slices, begin, count);
  operands.add_scratch(scratch, count);
  if (!step.kept.empty()) operands.add_kept(step.kept, begin, count);
  convert_inputs(step, begin, count, scratch);
  for (const ValueId id : bound_.matrices) operands.add_matrix(id, section_.matrix(id));
  std::vector<ReductionTree::Partial> partials;
  for (const ValueId id : pass_.reductions) {
    partials.push_back(section_.reductions.at(id)->take());
    operands.add_matrix(id, partials.back()->data());
  }
  for (std::size_t i = 0; i < bound_.steps.size(); ++i) {
    const bool skipped = !step.kept.empty() && !pass_.skipped.empty() && pass_.skipped[i];
    if (!skipped) operands.call(bound_.steps[i], state_);
  }
  const std::int64_t block_rows = context_.edges.block_rows;
  const std::int64_t leaf = step.row / block_rows * bound_.groups_per_block +
                            step.row % block_rows / pass_.group_rows + index;
  for (std::size_t i = 0; i < partials.size(); ++i) {
    section_.reductions.at(pass_.reductions[i])->add(leaf, std::move(partials[i]));
  }
}

}  // namespace ooc
