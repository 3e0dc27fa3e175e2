// The row-wise work of a pass: rows of the destination range at hand through the steps.
#include <algorithm>
#include <utility>

#include "sched/run/pass_run.h"
#include "storage/base/errors.h"

namespace ooc {

// Rows that are taken up at once, with the operands' addresses at the first one.
struct PassRun::Step {
  std::shared_ptr<DstRange> dst_range;
  std::int64_t row = 0, end = 0;
  std::vector<SlicedRows> operands;
  bool stored = false;           // whether the rows are of those that are stored
  std::int64_t groups_left = 0;  // under the driver's lock
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
        ceil_div(kept.index(end_row(dst_range)), rows) - kept.index(first_row(dst_range)) / rows;
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

std::int64_t PassRun::rows_item(const Use& use, std::int64_t row) const {
  const StoredRows& kept = use.access.tensor->kept;
  const std::int64_t first = kept.index(first_row(*rows_.front()));
  return use.dst_range_items + kept.index(row) / item_rows(use) - first / item_rows(use);
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
    if (!use.stream->ready(rows_item(use, row))) return WaitCause::kReads;
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
    use.stream->hold(rows_item(use, step->row), ceil_div(end - row, pass_.step_rows));
  }
  if (pass_.steps.empty()) return finish_step(*step);
  find_operands(*step);
  step->groups_left = ceil_div(step->end - step->row, pass_.group_rows);
  for (std::int64_t group = 0, count = step->groups_left; group < count; ++group) {
    launch([this, step, group] { compute_group(*step, group); },
           [this, step] {
             if (--step->groups_left == 0) finish_step(*step);
           });
  }
}

void PassRun::find_operands(Step& step) {
  rows_begun_.insert(step.row);
  for (const BoundOperand& operand : bound_.operands) {
    SlicedRows rows;
    if (operand.place == RowProgram::Place::kMatrix) {
      rows = one_slice(section_.matrix(operand.value));
    } else if (operand.use != BoundOperand::kNone) {
      const Use& use = uses_[operand.use];
      const bool there = use.access.tensor->kept.has(step.row);
      if (there) rows = rows_at(*step.dst_range, use, step.row);
      step.stored |= there && operand.place == RowProgram::Place::kScratch;
    }
    step.operands.push_back(rows);
  }
}

// All slices of a row, or those at hand in the destination range.
SlicedRows PassRun::rows_at(const DstRange& dst_range, const Use& use, std::int64_t row) const {
  return sliced_rows(slice_begin(dst_range, use), slice_end(dst_range, use),
                     use.access.tensor->layout.slice_count(),
                     [&](std::int64_t slice) { return row_address(dst_range, use, row, slice); });
}

// Of rows that are there, or have their place.
std::byte* PassRun::row_address(const DstRange& dst_range, const Use& use, std::int64_t row,
                                std::int64_t slice) const {
  const PlannedTensor& tensor = *use.access.tensor;
  const DstRangeRows& rows = use.dst_ranges[dst_range.place];
  switch (use.planned->role) {
    case UseRole::kRows: {
      const std::int64_t item = rows_item(use, row);
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
      use.stream->release(rows_item(use, step.row));
    }
    const std::int64_t row = kept.index(step.row);
    if (use.writer) use.writer->finish(row, row + step.end - step.row);
    const DstRangeRows& rows = use.dst_ranges[step.dst_range->place];
    if (rows.writer) rows.writer->finish(step.row, step.end);
  }
  rows_begun_.erase(step.row);
  if ((step.dst_range->rows_left -= step.end - step.row) == 0) context_.driver.wake();
}

void PassRun::compute_group(const Step& step, std::int64_t index) {
  RowCall call;
  call.first_row = index * pass_.group_rows;
  call.rows = std::min(pass_.group_rows, step.end - step.row - call.first_row);
  call.stored = step.stored;
  call.operands = step.operands;
  call.state = state_;
  call.scratch = scratch();
  std::vector<void*> partials;
  for (const ValueId id : pass_.reductions) {
    partials.push_back(section_.reductions.at(id)->take());
  }
  call.partials = partials;
  bound_.rows->run(call);
  const std::int64_t block_rows = context_.edges.block_rows;
  const std::int64_t leaf = step.row / block_rows * bound_.groups_per_block +
                            step.row % block_rows / pass_.group_rows + index;
  for (std::size_t i = 0; i < partials.size(); ++i) {
    section_.reductions.at(pass_.reductions[i])->add(leaf, static_cast<std::byte*>(partials[i]));
  }
}

}  // namespace ooc
