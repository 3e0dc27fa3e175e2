// The row-wise work of a pass: rows of the part at hand through the steps.
#include <algorithm>
#include <utility>

#include "sched/pass_run.h"
#include "storage/errors.h"

namespace ooc {

// Rows that are taken up at once, with slice pointers at the first one, operand after operand.
struct PassRun::Step {
  std::int64_t row = 0, end = 0;
  std::vector<void*> slices;
  std::vector<const void*> stored;  // likewise, of inputs that are converted
  std::int64_t groups_left = 0;     // under the driver's lock
};

std::int64_t PassRun::first_row() const { return first_block_ * context_.edges.block_rows; }

std::int64_t PassRun::end_row() const {
  return std::min(end_block_ * context_.edges.block_rows, context_.edges.vertices);
}

bool PassRun::run_rows() {
  Driver& driver = context_.driver;
  rows_left_ = end_row() - first_row();
  for (Use& use : uses_) {
    if (use.planned->role != UseRole::kRows) continue;
    const std::int64_t rows = item_rows(use);
    use.part_items = use.next_part_items;
    use.next_part_items +=
        use.access.tensor->layout.slice_count() * (ceil_div(end_row(), rows) - first_row() / rows);
  }
  for (std::int64_t row = first_row(); row < end_row(); row += pass_.step_rows) {
    const auto step = std::make_shared<Step>();
    step->row = row;
    step->end = std::min(row + pass_.step_rows, end_row());
    if (!prepare_step(*step)) return false;
    if (pass_.steps.empty()) {
      const auto lock = driver.lock();
      finish_step(*step);
      continue;
    }
    const std::int64_t groups = ceil_div(step->end - row, pass_.group_rows);
    step->groups_left = groups;
    for (std::int64_t group = 0; group < groups; ++group) {
      driver.run([this, step, group] { compute_group(*step, group); },
                 [this, step] {
                   if (--step->groups_left == 0) finish_step(*step);
                 });
    }
  }
  auto lock = driver.lock();
  if (!wait(lock, WaitCause::kWorkers, [&] { return rows_left_ == 0; })) return false;
  // What the part's memory holds must be on disk before the next part takes it, or the next pass.
  return wait(lock, WaitCause::kWrites, [&] {
    return std::all_of(uses_.begin(), uses_.end(),
                       [](const Use& use) { return !use.writer || use.writer->idle(); });
  });
}

std::int64_t PassRun::item_rows(const Use& use) {
  return use.item_blocks * use.access.tensor->layout.block_rows;
}

std::int64_t PassRun::rows_item(const Use& use, std::int64_t row, std::int64_t slice) const {
  const std::int64_t unit = row / item_rows(use) - first_row() / item_rows(use);
  return use.part_items + unit * use.access.tensor->layout.slice_count() + slice;
}

bool PassRun::prepare_rows(std::unique_lock<std::mutex>& lock, Use& use, std::int64_t row) {
  const bool first = row % item_rows(use) == 0 || row == first_row();
  const std::int64_t end = std::min(round_up(row + 1, item_rows(use)), end_row());
  for (std::int64_t slice = 0; slice < use.access.tensor->layout.slice_count(); ++slice) {
    const std::int64_t item = rows_item(use, row, slice);
    const auto ready = [&] { return use.stream->ready(item); };
    if (!wait(lock, WaitCause::kReads, ready)) return false;
    if (first) use.stream->hold(item, ceil_div(end - row, pass_.step_rows));
  }
  return true;
}

// Until everything that the steps touch has a place and is there.
bool PassRun::prepare_step(Step& step) {
  Driver& driver = context_.driver;
  auto lock = driver.lock();
  if (!wait_for_room(lock)) return false;
  const auto in_window = [&] {
    return rows_begun_.empty() || (step.row - *rows_begun_.begin()) / pass_.step_rows <=
                                      steps_ahead(driver.workers(), bound_.groups_per_step);
  };
  if (!wait(lock, WaitCause::kWorkers, in_window)) return false;
  for (Use& use : uses_) {
    if (use.planned->role == UseRole::kRows) {
      if (!prepare_rows(lock, use, step.row)) return false;
    } else if (use.planned->role == UseRole::kOutput) {
      const auto ready = [&] { return use.writer->ready(step.row, step.end); };
      if (!wait(lock, WaitCause::kWrites, ready)) return false;
    }
  }
  if (pass_.kind == PassKind::kPropagate) {
    const auto done = [&] {
      return folded(step.row / context_.edges.block_rows,
                    ceil_div(context_.edges.span_count(), pass_.span_group));
    };
    if (!wait(lock, WaitCause::kWorkers, done)) return false;
  }
  if (!pass_.steps.empty()) find_operands(step);
  return true;
}

void PassRun::find_operands(Step& step) {
  rows_begun_.insert(step.row);
  for (const BoundOperand& operand : bound_.operands) {
    const Use& use = uses_[operand.use];
    for (std::int64_t s = 0; s < use.access.tensor->layout.slice_count(); ++s) {
      step.slices.push_back(row_address(use, step.row, s));
    }
  }
  for (const BoundOperand& operand : bound_.converted) {
    const Use& use = uses_[operand.use];
    for (std::int64_t s = 0; s < use.access.tensor->layout.slice_count(); ++s) {
      step.stored.push_back(row_address(use, step.row, s));
    }
  }
}

// Of rows that are there, or have their place.
std::byte* PassRun::row_address(const Use& use, std::int64_t row, std::int64_t slice) const {
  const PlannedTensor& tensor = *use.access.tensor;
  switch (use.planned->role) {
    case UseRole::kRows: {
      const std::int64_t item = rows_item(use, row, slice);
      return use.loader->rows(item, use.stream->data(item)).at(tensor, row, slice);
    }
    case UseRole::kResident: {
      const int piece = use.access.piece(row / tensor.layout.block_rows);
      const RowsPlace place = piece >= 0 ? context_.residency.place(piece) : use.part;
      return place.at(tensor, row, slice);
    }
    case UseRole::kOutput:
    case UseRole::kAccumulator:
      return use.writer->at(row, slice);
    case UseRole::kStreamed:
      break;
  }
  OOC_CHECK(!"streamed rows are found by their span");
  return nullptr;
}

void PassRun::finish_step(const Step& step) {
  for (Use& use : uses_) {
    if (use.planned->role == UseRole::kRows) {
      for (std::int64_t slice = 0; slice < use.access.tensor->layout.slice_count(); ++slice) {
        use.stream->release(rows_item(use, step.row, slice));
      }
    }
    if (use.writer) use.writer->finish(step.row, step.end);
  }
  rows_begun_.erase(step.row);
  rows_left_ -= step.end - step.row;
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
  std::byte* scratch =
      context_.scratch + context_.driver.worker() * worker_scratch_bytes(context_.plan);

  GroupOperands operands(*section_.program, bound_);
  operands.add_tensors(step.slices, begin, count);
  operands.add_scratch(scratch, count);
  convert_inputs(step, begin, count, scratch);
  for (const ValueId id : bound_.matrices) operands.add_matrix(id, section_.matrix(id));
  std::vector<ReductionTree::Partial> partials;
  for (const ValueId id : pass_.reductions) {
    partials.push_back(section_.reductions.at(id)->take());
    operands.add_matrix(id, partials.back()->data());
  }
  for (const BoundStep& call : bound_.steps) operands.call(call, state_);
  const std::int64_t block_rows = context_.edges.block_rows;
  const std::int64_t leaf = step.row / block_rows * bound_.groups_per_block +
                            step.row % block_rows / pass_.group_rows + index;
  for (std::size_t i = 0; i < partials.size(); ++i) {
    section_.reductions.at(pass_.reductions[i])->add(leaf, std::move(partials[i]));
  }
}

}  // namespace ooc
