// The row-wise work of a pass: blocks of the part at hand through the steps.
#include <algorithm>
#include <utility>

#include "sched/pass_run.h"
#include "storage/errors.h"

namespace ooc {

// Slice pointers, operand after operand.
struct PassRun::BlockOperands {
  std::int64_t block = 0;
  std::int64_t rows = 0;
  std::vector<void*> slices;
  std::vector<const void*> stored;  // likewise, of inputs that are converted
  std::int64_t groups_left = 0;     // under the driver's lock
};

bool PassRun::run_rows() {
  Driver& driver = context_.driver;
  blocks_left_ = end_block_ - first_block_;
  for (Use& use : uses_) {
    if (use.planned->role != UseRole::kRows) continue;
    use.part_items = use.next_part_items;
    use.next_part_items += use.access.tensor->layout.slice_count() *
                           (ceil_div(end_block_, use.item_blocks) - first_block_ / use.item_blocks);
  }
  for (std::int64_t block = first_block_; block < end_block_; ++block) {
    if (!prepare_block(block)) return false;
    if (pass_.steps.empty()) {
      const auto lock = driver.lock();
      finish_block(block);
      continue;
    }
    const auto operands = operands_of(block);
    const std::int64_t groups = ceil_div(operands->rows, pass_.group_rows);
    operands->groups_left = groups;
    for (std::int64_t group = 0; group < groups; ++group) {
      driver.run([this, operands, group] { compute_group(*operands, group); },
                 [this, operands] {
                   if (--operands->groups_left == 0) finish_block(operands->block);
                 });
    }
  }
  auto lock = driver.lock();
  if (!wait(lock, WaitCause::kWorkers, [&] { return blocks_left_ == 0; })) return false;
  // What the part's memory holds must be on disk before the next part takes it, or the next pass.
  return wait(lock, WaitCause::kWrites, [&] {
    return std::all_of(uses_.begin(), uses_.end(),
                       [](const Use& use) { return !use.writer || use.writer->idle(); });
  });
}

std::int64_t PassRun::rows_item(const Use& use, std::int64_t block, std::int64_t slice) const {
  const std::int64_t unit = block / use.item_blocks - first_block_ / use.item_blocks;
  return use.part_items + unit * use.access.tensor->layout.slice_count() + slice;
}

bool PassRun::prepare_rows(std::unique_lock<std::mutex>& lock, Use& use, std::int64_t block) {
  const bool first = block % use.item_blocks == 0 || block == first_block_;
  const std::int64_t end = std::min(round_up(block + 1, use.item_blocks), end_block_);
  for (std::int64_t slice = 0; slice < use.access.tensor->layout.slice_count(); ++slice) {
    const std::int64_t item = rows_item(use, block, slice);
    const auto ready = [&] { return use.stream->ready(item); };
    if (!wait(lock, WaitCause::kReads, ready)) return false;
    if (first) use.stream->hold(item, end - block);
  }
  return true;
}

// Until everything that the block's steps touch has a place and is there.
bool PassRun::prepare_block(std::int64_t block) {
  Driver& driver = context_.driver;
  auto lock = driver.lock();
  if (!wait_for_room(lock)) return false;
  const auto in_window = [&] {
    return blocks_begun_.empty() || block - *blocks_begun_.begin() <=
                                        blocks_ahead(driver.workers(), bound_.groups_per_block);
  };
  if (!wait(lock, WaitCause::kWorkers, in_window)) return false;
  for (Use& use : uses_) {
    if (use.planned->role == UseRole::kRows) {
      if (!prepare_rows(lock, use, block)) return false;
    } else if (use.planned->role == UseRole::kOutput) {
      if (!wait(lock, WaitCause::kWrites, [&] { return use.writer->ready(block); })) return false;
    }
  }
  if (pass_.kind == PassKind::kRow) return true;
  return wait(lock, WaitCause::kWorkers, [&] {
    return folded(block, ceil_div(context_.edges.span_count(), pass_.span_group));
  });
}

std::shared_ptr<PassRun::BlockOperands> PassRun::operands_of(std::int64_t block) {
  auto operands = std::make_shared<BlockOperands>();
  operands->block = block;
  operands->rows = std::min(context_.edges.block_rows,
                            context_.edges.vertices - block * context_.edges.block_rows);
  const auto lock = context_.driver.lock();
  blocks_begun_.insert(block);
  for (const BoundOperand& operand : bound_.operands) {
    const Use& use = uses_[operand.use];
    for (std::int64_t s = 0; s < use.access.tensor->layout.slice_count(); ++s) {
      operands->slices.push_back(row_address(use, block, s));
    }
  }
  for (const BoundOperand& operand : bound_.converted) {
    const Use& use = uses_[operand.use];
    for (std::int64_t s = 0; s < use.access.tensor->layout.slice_count(); ++s) {
      operands->stored.push_back(row_address(use, block, s));
    }
  }
  return operands;
}

// Of rows that are there, or have their place.
std::byte* PassRun::row_address(const Use& use, std::int64_t block, std::int64_t slice) const {
  switch (use.planned->role) {
    case UseRole::kRows: {
      const std::int64_t item = rows_item(use, block, slice);
      return use.loader->rows(item, use.stream->data(item)).at(*use.access.tensor, block, slice);
    }
    case UseRole::kResident: {
      const int piece = use.access.piece(block);
      const RowsPlace place = piece >= 0 ? context_.residency.place(piece) : use.part;
      return place.at(*use.access.tensor, block, slice);
    }
    case UseRole::kOutput:
    case UseRole::kAccumulator:
      return use.writer->at(block, slice);
    case UseRole::kStreamed:
      break;
  }
  OOC_CHECK(!"streamed rows are found by their span");
  return nullptr;
}

void PassRun::finish_block(std::int64_t block) {
  for (Use& use : uses_) {
    if (use.planned->role == UseRole::kRows) {
      for (std::int64_t slice = 0; slice < use.access.tensor->layout.slice_count(); ++slice) {
        use.stream->release(rows_item(use, block, slice));
      }
    }
    if (use.writer) use.writer->finish(block);
  }
  blocks_begun_.erase(block);
  --blocks_left_;
}

// Inputs that are stored in another type than the steps read, into the worker's scratch.
void PassRun::convert_inputs(const BlockOperands& block, std::int64_t begin, std::int64_t count,
                             std::byte* scratch) {
  auto stored = block.stored.begin();
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

void PassRun::compute_group(const BlockOperands& block, std::int64_t index) {
  const std::int64_t begin = index * pass_.group_rows;
  const std::int64_t count = std::min(pass_.group_rows, block.rows - begin);
  std::byte* scratch =
      context_.scratch + context_.driver.worker() * worker_scratch_bytes(context_.plan);

  GroupOperands operands(*section_.program, bound_);
  operands.add_tensors(block.slices, begin, count);
  operands.add_scratch(scratch, count);
  convert_inputs(block, begin, count, scratch);
  for (const ValueId id : bound_.matrices) operands.add_matrix(id, section_.matrix(id));
  std::vector<ReductionTree::Partial> partials;
  for (const ValueId id : pass_.reductions) {
    partials.push_back(section_.reductions.at(id)->take());
    operands.add_matrix(id, partials.back()->data());
  }
  for (const BoundStep& step : bound_.steps) operands.call(step, state_);
  const std::int64_t leaf = block.block * bound_.groups_per_block + index;
  for (std::size_t i = 0; i < partials.size(); ++i) {
    section_.reductions.at(pass_.reductions[i])->add(leaf, std::move(partials[i]));
  }
}

}  // namespace ooc
