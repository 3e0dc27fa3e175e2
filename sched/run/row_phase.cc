#include "sched/run/row_phase.h"

#include <algorithm>
#include <utility>

namespace ooc {

// Rows that lie beside each other. Operands' addresses are those of the first row.
struct RowPhase::Step {
  std::int64_t row = 0, end = 0;
  std::vector<SlicedRows> operands;
  bool stored = false;  // whether the rows are of those that are stored
};

struct RowPhase::Batch {
  std::shared_ptr<DstRange> dst_range;
  std::vector<Step> steps;
  std::int64_t calls_left = 0;  // under the driver's lock
};

// Groups for one call of the row program: of steps beside each other.
struct RowPhase::Groups {
  struct Group {
    const Step* step = nullptr;
    std::int64_t index = 0;  // in the step
  };
  std::vector<Group> groups;
};

RowPhase::RowPhase(const PassInfo& info, PassStreams& streams, PassLoop& loop)
    : info_(info), streams_(streams), loop_(loop) {}

std::int64_t RowPhase::first_row(const DstRange& dst_range) const {
  return dst_range.first_block * info_.context.edges.block_rows;
}

std::int64_t RowPhase::end_row(const DstRange& dst_range) const {
  const EdgeLayout& edges = info_.context.edges;
  return std::min(dst_range.end_block * edges.block_rows, edges.vertices);
}

std::int64_t RowPhase::item_of(const PassUse& use, const DstRange& dst_range,
                               std::int64_t row) const {
  return streams_.rows_item(use, first_row(dst_range), row);
}

void RowPhase::take_up(const std::shared_ptr<DstRange>& dst_range) {
  dst_range->next_row = first_row(*dst_range);
  dst_range->rows_left = end_row(*dst_range) - dst_range->next_row;
  dst_ranges_.push_back(dst_range);
  if (dst_ranges_.size() == 1) begin_rows();
}

// Of the next destination range: what it reads as kRows comes after what the one before it did.
void RowPhase::begin_rows() {
  const DstRange& dst_range = *dst_ranges_.front();
  for (PassUse& use : streams_.uses()) {
    if (use.role() != UseRole::kRows) continue;
    const std::int64_t rows = use.item_rows();
    use.dst_range_items = use.next_dst_range_items;
    const StoredRows& kept = use.tensor().kept;
    use.next_dst_range_items +=
        ceil_div(kept.index(end_row(dst_range)), rows) - kept.index(first_row(dst_range)) / rows;
  }
}

bool RowPhase::advance() {
  bool began = false;
  while (!dst_ranges_.empty()) {
    DstRange& dst_range = *dst_ranges_.front();
    if (dst_range.rows_left == 0) {
      dst_ranges_.pop_front();
      if (!dst_ranges_.empty()) begin_rows();
      continue;
    }
    if (const std::optional<WaitCause> cause = next_lacks(dst_range)) {
      waits_for_ = *cause;
      break;
    }
    begin_batch();
    began = true;
  }
  return began;
}

// Rows that it makes may have got their place.
bool RowPhase::may_step() { return !dst_ranges_.empty() && !next_lacks(*dst_ranges_.front()); }

// What the next batch of a destination range waits for.
std::optional<WaitCause> RowPhase::next_lacks(const DstRange& dst_range) {
  const std::int64_t end = end_of_batch(dst_range);
  if (dst_range.next_row == end) return WaitCause::kWorkers;
  for (std::int64_t row = dst_range.next_row; row < end; row += info_.pass.step_rows) {
    const std::optional<WaitCause> cause =
        lacks(dst_range, row, std::min(row + info_.pass.step_rows, end));
    if (cause) return cause;
  }
  return std::nullopt;
}

std::int64_t RowPhase::end_of_batch(const DstRange& dst_range) const {
  return std::min(dst_range.next_row + info_.pass.batch_steps * info_.pass.step_rows,
                  end_row(dst_range));
}

std::int64_t RowPhase::most_tasks() const {
  return tasks_at_once(info_.context.driver.workers()) / (folds_ ? 2 : 1);
}

// Over all spans.
bool RowPhase::is_folded(const DstRange& dst_range, std::int64_t block) const {
  const std::int64_t slices = std::ssize(dst_range.folded) / dst_range.blocks();
  const auto first = dst_range.folded.begin() + (block - dst_range.first_block) * slices;
  return std::all_of(first, first + slices, [&](std::int32_t folded) {
    return folded == info_.context.edges.span_count();
  });
}

// What the rows [row, end) wait for: until everything that the steps touch has a place and is
// there. Nothing: they may begin.
std::optional<WaitCause> RowPhase::lacks(const DstRange& dst_range, std::int64_t row,
                                         std::int64_t end) {
  const Driver& driver = info_.context.driver;
  const Pass& pass = info_.pass;
  if (!pass.steps.empty() && driver.tasks() > most_tasks()) return WaitCause::kWorkers;
  const bool in_window = begun_.empty() || pass.lanes > 0 ||
                         (row - *begun_.begin()) / pass.step_rows <=
                             steps_ahead(driver.workers(), info_.bound.groups_per_step);
  if (!in_window) return WaitCause::kWorkers;
  if (pass.kind == PassKind::kPropagate &&
      !is_folded(dst_range, row / info_.context.edges.block_rows)) {
    return WaitCause::kWorkers;
  }
  if (!loop_.has_scratch()) return WaitCause::kWrites;
  for (const PassUse& use : streams_.uses()) {
    if (use.role() != UseRole::kRows || !use.tensor().kept.has(row)) continue;
    if (!use.stream->ready(item_of(use, dst_range, row))) return WaitCause::kReads;
  }
  for (PassUse& use : streams_.uses()) {
    const StoredRows& kept = use.tensor().kept;
    if (!use.writer || !kept.has(row)) continue;
    const std::int64_t first = kept.index(row);
    if (!use.writer->ready(first, first + end - row)) return WaitCause::kWrites;
  }
  return std::nullopt;
}

// The next one of the destination range whose rows run.
void RowPhase::begin_batch() {
  const auto batch = std::make_shared<Batch>();
  batch->dst_range = dst_ranges_.front();
  DstRange& dst_range = *batch->dst_range;
  const std::int64_t end = end_of_batch(dst_range);
  for (std::int64_t row = dst_range.next_row; row < end; row += info_.pass.step_rows) {
    batch->steps.push_back({row, std::min(row + info_.pass.step_rows, end), {}});
    hold_items(dst_range, batch->steps.back());
    if (!info_.pass.steps.empty()) find_operands(dst_range, batch->steps.back());
  }
  dst_range.next_row = end;
  if (info_.pass.steps.empty()) return finish_batch(*batch);
  begun_.insert(batch->steps.front().row);
  const std::vector<Groups> calls = calls_of(*batch);
  batch->calls_left = std::ssize(calls);
  for (const Groups& groups : calls) {
    loop_.launch(
        "rows", seconds_of(groups), [this, batch, groups] { compute(groups); },
        [this, batch] {
          if (--batch->calls_left == 0) finish_batch(*batch);
        });
  }
}

// As many groups in each as there are lanes; all of them stored, or none.
std::vector<RowPhase::Groups> RowPhase::calls_of(const Batch& batch) const {
  const std::int64_t most = std::max<std::int64_t>(info_.pass.lanes, 1);
  std::vector<Groups> calls;
  for (const Step& step : batch.steps) {
    const std::int64_t groups = ceil_div(step.end - step.row, info_.pass.group_rows);
    for (std::int64_t index = 0; index < groups; ++index) {
      const bool full = calls.empty() || std::ssize(calls.back().groups) == most;
      if (full || calls.back().groups.front().step->stored != step.stored) calls.emplace_back();
      calls.back().groups.push_back({&step, index});
    }
  }
  return calls;
}

double RowPhase::seconds_of(const Groups& groups) const {
  std::int64_t rows = 0;
  for (const Groups::Group& group : groups.groups) {
    rows += std::min(info_.pass.group_rows,
                     group.step->end - group.step->row - group.index * info_.pass.group_rows);
  }
  return info_.pass.row_seconds * static_cast<double>(rows) /
         static_cast<double>(info_.context.edges.vertices);
}

// Items that begin with the step, until the last one that reads them.
void RowPhase::hold_items(const DstRange& dst_range, const Step& step) {
  for (PassUse& use : streams_.uses()) {
    const StoredRows& kept = use.tensor().kept;
    if (use.role() != UseRole::kRows || !kept.has(step.row)) continue;
    const std::int64_t rows = use.item_rows(), row = kept.index(step.row);
    if (row % rows != 0 && step.row != first_row(dst_range)) continue;
    const std::int64_t end = std::min(round_up(row + 1, rows), kept.index(end_row(dst_range)));
    use.stream->hold(item_of(use, dst_range, step.row), ceil_div(end - row, info_.pass.step_rows));
  }
}

void RowPhase::find_operands(const DstRange& dst_range, Step& step) {
  for (const BoundOperand& operand : info_.bound.operands) {
    SlicedRows rows;
    if (operand.place == RowProgram::Place::kMatrix) {
      rows = one_slice(info_.section.matrix(operand.value));
    } else if (operand.use != BoundOperand::kNone) {
      const bool there = streams_.uses()[operand.use].tensor().kept.has(step.row);
      if (there) rows = streams_.rows_at(dst_range, operand.use, step.row);
      step.stored |= there && operand.place == RowProgram::Place::kScratch;
    }
    step.operands.push_back(rows);
  }
}

// The number of a group in the reductions.
std::int64_t RowPhase::leaf_of(const Step& step, std::int64_t group) const {
  const std::int64_t block_rows = info_.context.edges.block_rows, row = step.row;
  return row / block_rows * info_.bound.groups_per_block +
         row % block_rows / info_.pass.group_rows + group;
}

void RowPhase::compute(const Groups& groups) {
  const std::vector<Groups::Group>& all = groups.groups;
  const std::vector<ValueId>& sums = info_.pass.reductions;
  const std::int64_t count = std::ssize(all);
  std::vector<std::vector<std::byte*>> partials;  // by sum and group
  for (const ValueId id : sums) {
    ReductionTree& tree = *info_.section.reductions.at(id);
    partials.push_back(info_.pass.lanes > 0 ? tree.take_leaves(count) : std::vector{tree.take()});
  }
  std::vector<std::vector<void*>> of_groups(all.size());
  std::vector<RowGroup> rows;
  const std::span<std::byte> scratch = loop_.scratch();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const std::vector<std::byte*>& of_sum : partials) of_groups[i].push_back(of_sum[i]);
    const Step& step = *all[i].step;
    const std::int64_t first = all[i].index * info_.pass.group_rows;
    rows.push_back(
        {first, std::min(info_.pass.group_rows, step.end - step.row - first), step.operands,
         of_groups[i],
         scratch.data() + i * io_aligned(static_cast<std::uint64_t>(info_.pass.scratch_bytes))});
  }
  info_.bound.rows->run({rows, all.front().step->stored, info_.state});
  for (std::size_t i = 0; i < sums.size(); ++i) {
    ReductionTree& tree = *info_.section.reductions.at(sums[i]);
    if (info_.pass.lanes > 0) {
      tree.add_leaves(leaf_of(*all.front().step, all.front().index), count);
    } else {
      tree.add(leaf_of(*all.front().step, all.front().index), partials[i].front());
    }
  }
}

void RowPhase::finish_batch(const Batch& batch) {
  DstRange& dst_range = *batch.dst_range;
  for (const Step& step : batch.steps) {
    for (PassUse& use : streams_.uses()) {
      const StoredRows& kept = use.tensor().kept;
      if (!kept.has(step.row)) continue;
      if (use.role() == UseRole::kRows) use.stream->release(item_of(use, dst_range, step.row));
      const std::int64_t row = kept.index(step.row);
      if (use.writer) use.writer->finish(row, row + step.end - step.row);
      if (use.role() != UseRole::kAccumulator) continue;
      dst_range.rows[streams_.index_of(use)].writer->finish(step.row, step.end);
    }
  }
  begun_.erase(batch.steps.front().row);
  const std::int64_t rows = batch.steps.back().end - batch.steps.front().row;
  if ((dst_range.rows_left -= rows) == 0) info_.context.driver.wake();
}

}  // namespace ooc
