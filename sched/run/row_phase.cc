#include "sched/run/row_phase.h"

#include <algorithm>
#include <utility>

namespace ooc {

// Rows that are taken up at once. Operands' addresses are those of the first row.
struct RowPhase::Step {
  std::shared_ptr<DstRange> dst_range;
  std::int64_t row = 0, end = 0;
  std::vector<SlicedRows> operands;
  bool stored = false;           // whether the rows are of those that are stored
  std::int64_t groups_left = 0;  // under the driver's lock
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
    begin_step();
    began = true;
  }
  return began;
}

// Rows that it makes may have got their place.
bool RowPhase::may_step() { return !dst_ranges_.empty() && !next_lacks(*dst_ranges_.front()); }

// What the next step of a destination range waits for.
std::optional<WaitCause> RowPhase::next_lacks(const DstRange& dst_range) {
  const std::int64_t row = dst_range.next_row,
                     end = std::min(row + info_.pass.step_rows, end_row(dst_range));
  return row < end ? lacks(dst_range, row, end) : WaitCause::kWorkers;
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
  const bool in_window =
      begun_.empty() || (row - *begun_.begin()) / pass.step_rows <=
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
void RowPhase::begin_step() {
  const auto step = std::make_shared<Step>();
  step->dst_range = dst_ranges_.front();
  DstRange& dst_range = *step->dst_range;
  step->row = dst_range.next_row;
  step->end = dst_range.next_row = std::min(step->row + info_.pass.step_rows, end_row(dst_range));
  hold_items(*step);
  if (info_.pass.steps.empty()) return finish_step(*step);
  find_operands(*step);
  begun_.insert(step->row);
  step->groups_left = ceil_div(step->end - step->row, info_.pass.group_rows);
  for (std::int64_t group = 0, count = step->groups_left; group < count; ++group) {
    loop_.launch([this, step, group] { compute_group(*step, group); },
                 [this, step] {
                   if (--step->groups_left == 0) finish_step(*step);
                 });
  }
}

// Items that begin with the step, until the last one that reads them.
void RowPhase::hold_items(const Step& step) {
  const DstRange& dst_range = *step.dst_range;
  for (PassUse& use : streams_.uses()) {
    const StoredRows& kept = use.tensor().kept;
    if (use.role() != UseRole::kRows || !kept.has(step.row)) continue;
    const std::int64_t rows = use.item_rows(), row = kept.index(step.row);
    if (row % rows != 0 && step.row != first_row(dst_range)) continue;
    const std::int64_t end = std::min(round_up(row + 1, rows), kept.index(end_row(dst_range)));
    use.stream->hold(item_of(use, dst_range, step.row), ceil_div(end - row, info_.pass.step_rows));
  }
}

void RowPhase::find_operands(Step& step) {
  for (const BoundOperand& operand : info_.bound.operands) {
    SlicedRows rows;
    if (operand.place == RowProgram::Place::kMatrix) {
      rows = one_slice(info_.section.matrix(operand.value));
    } else if (operand.use != BoundOperand::kNone) {
      const bool there = streams_.uses()[operand.use].tensor().kept.has(step.row);
      if (there) rows = streams_.rows_at(*step.dst_range, operand.use, step.row);
      step.stored |= there && operand.place == RowProgram::Place::kScratch;
    }
    step.operands.push_back(rows);
  }
}

void RowPhase::compute_group(const Step& step, std::int64_t index) {
  const Pass& pass = info_.pass;
  RowCall call;
  call.first_row = index * pass.group_rows;
  call.rows = std::min(pass.group_rows, step.end - step.row - call.first_row);
  call.stored = step.stored;
  call.operands = step.operands;
  call.state = info_.state;
  call.scratch = loop_.scratch().data();
  std::vector<void*> partials;
  for (const ValueId id : pass.reductions) {
    partials.push_back(info_.section.reductions.at(id)->take());
  }
  call.partials = partials;
  info_.bound.rows->run(call);
  const std::int64_t block_rows = info_.context.edges.block_rows;
  const std::int64_t leaf = step.row / block_rows * info_.bound.groups_per_block +
                            step.row % block_rows / pass.group_rows + index;
  for (std::size_t i = 0; i < partials.size(); ++i) {
    info_.section.reductions.at(pass.reductions[i])
        ->add(leaf, static_cast<std::byte*>(partials[i]));
  }
}

void RowPhase::finish_step(const Step& step) {
  DstRange& dst_range = *step.dst_range;
  for (PassUse& use : streams_.uses()) {
    const StoredRows& kept = use.tensor().kept;
    if (!kept.has(step.row)) continue;
    if (use.role() == UseRole::kRows) use.stream->release(item_of(use, dst_range, step.row));
    const std::int64_t row = kept.index(step.row);
    if (use.writer) use.writer->finish(row, row + step.end - step.row);
    if (use.role() != UseRole::kAccumulator) continue;
    dst_range.rows[streams_.index_of(use)].writer->finish(step.row, step.end);
  }
  begun_.erase(step.row);
  if ((dst_range.rows_left -= step.end - step.row) == 0) info_.context.driver.wake();
}

}  // namespace ooc
