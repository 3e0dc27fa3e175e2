#include "sched/run/pass_run.h"

#include <algorithm>
#include <utility>

#include "sched/plan/io_chunks.h"
#include "storage/base/errors.h"

namespace ooc {

std::byte* SectionState::matrix(ValueId id) const {
  if (value(id).kind != ValueKind::kParameter) {
    return const_cast<std::byte*>(reductions.at(id)->result());
  }
  std::byte* parameter = parameters[static_cast<std::size_t>(id)];
  OOC_CHECK(parameter != nullptr);
  return parameter;
}

PassRun::PassRun(PassContext& context, SectionState& section, std::size_t pass,
                 const StepSeed& state)
    : context_(context),
      section_(section),
      bound_(section.passes[pass]),
      pass_(*bound_.pass),
      index_(section.section->first_pass + static_cast<int>(pass)),
      state_(state),
      windows_(context.edges, pass_.group_blocks, pass_.span_group) {
  OOC_CHECK(pass_.dst_ranges_at_once <= static_cast<std::int64_t>(kMostDstRanges));
  open_uses();
}

PassRun::~PassRun() {
  if (!done_) context_.driver.drain();
}

namespace {

// Calls visit(first_slice, end_slice, first_block, end_block) for the destination ranges in order,
// while it returns true; returns whether it did to the end.
template <class Visit>
bool for_each_dst_range(const Pass& pass, std::int64_t blocks, Visit&& visit) {
  if (pass.kind == PassKind::kRow) return visit(0, 1, 0, blocks);
  const std::int64_t slices =
      std::max<std::int64_t>(ceil_div(pass.slice_local_cols, kSliceWidth), 1);
  const std::int64_t at_once = pass.slices_at_once > 0 ? pass.slices_at_once : slices;
  for (std::int64_t slice = 0; slice < slices; slice += at_once) {
    for (std::int64_t block = 0; block < blocks; block += pass.dst_range_blocks) {
      const bool on = visit(slice, std::min(slice + at_once, slices), block,
                            std::min(block + pass.dst_range_blocks, blocks));
      if (!on) return false;
    }
  }
  return true;
}

}  // namespace

bool PassRun::run() {
  context_.residency.begin_pass(index_);
  if (context_.host != nullptr) context_.host->begin_pass(index_);
  std::int64_t count = 0;
  const bool all = for_each_dst_range(
      pass_, context_.edges.block_count(),
      [&](std::int64_t first_slice, std::int64_t end_slice, std::int64_t first, std::int64_t end) {
        const auto dst_range = std::make_shared<DstRange>();
        dst_range->first_block = first;
        dst_range->end_block = end;
        dst_range->first_slice = first_slice;
        dst_range->end_slice = end_slice;
        dst_range->sweep = count++;
        dst_range->place = static_cast<std::size_t>(dst_range->sweep) % kMostDstRanges;
        return run_dst_range(dst_range);
      });
  if (!all) return false;
  auto lock = context_.driver.lock();
  return done_ = wait_for_rows(lock, [this] { return is_done(); });
}

// Its rows are left to advance_rows().
bool PassRun::run_dst_range(const std::shared_ptr<DstRange>& dst_range) {
  if (pass_.kind == PassKind::kPropagate) {
    {
      auto lock = context_.driver.lock();
      if (!wait_for_rows(lock, [&] { return may_begin(*dst_range); })) return false;
    }
    folds_ = true;
    const bool folded = propagate_dst_range(dst_range);
    folds_ = false;
    return folded;
  }
  take_up_rows(dst_range);
  return true;
}

// After those of the destination ranges before.
void PassRun::take_up_rows(const std::shared_ptr<DstRange>& dst_range) {
  const auto lock = context_.driver.lock();
  dst_range->next_row = first_row(*dst_range);
  dst_range->rows_left = end_row(*dst_range) - dst_range->next_row;
  rows_.push_back(dst_range);
  if (rows_.size() == 1) begin_rows();
}

bool PassRun::wait_for_rows(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done) {
  while (!done()) {
    const bool steps = !rows_.empty();
    const WaitCause cause = steps ? rows_wait_ : WaitCause::kWrites;
    const auto ready = [&] {
      return done() || rows_.empty() == steps || (steps && rows_wait_ != cause);
    };
    if (!wait(lock, cause, ready)) return false;
  }
  return true;
}

// Whether the destination range may be folded: with memory for two destination ranges, or where all
// that the one before leaves behind are sums, behind which it has its place block by block
// (has_memory()).
bool PassRun::may_begin(const DstRange& dst_range) const {
  const bool follows =
      bound_.edges.reductions.empty() &&
      std::none_of(uses_.begin(), uses_.end(), [](const Use& use) {
        return use.planned->role == UseRole::kResident && use.planned->memory.bytes > 0;
      });
  return is_free(dst_range.place) &&
         (pass_.dst_ranges_at_once > 1 || follows || is_free(1 - dst_range.place));
}

// Whether nothing is left there of the last destination range that had this place.
bool PassRun::is_free(std::size_t place) const {
  const bool used = std::any_of(rows_.begin(), rows_.end(),
                                [&](const auto& dst_range) { return dst_range->place == place; });
  return !used && std::all_of(uses_.begin(), uses_.end(), [&](const Use& use) {
    return !use.dst_ranges[place].writer || use.dst_ranges[place].writer->idle();
  });
}

// Each row that is leaving is one transfer, and no others may be under way.
bool PassRun::is_done() const {
  const bool none_may_leave = &bound_ == &section_.passes.back() || context_.host != nullptr;
  const std::int64_t leaving = context_.leaving.count();
  return rows_.empty() && context_.driver.tasks() == 0 && context_.driver.transfers() == leaving &&
         (!none_may_leave || leaving == 0);
}

// Whether no rows of an earlier pass lie in the workers' scratch.
bool PassRun::has_scratch() const {
  return !context_.leaving.lie_in({context_.arena + pass_.worker_scratch.offset,
                                   static_cast<std::size_t>(pass_.worker_scratch.bytes)});
}

Slots PassRun::slots(const Region& memory, std::int64_t count) const {
  return {{context_.arena + memory.offset, static_cast<std::size_t>(memory.bytes)},
          count,
          context_.leaving};
}

// Of kRows and kOutput: the plan counts one a slice, and an item takes those of all.
Slots PassRun::row_slots(const Use& use) const {
  const std::int64_t slices = use.access.tensor->layout.slice_count();
  OOC_CHECK(use.planned->slots % slices == 0);
  return slots(use.planned->memory, use.planned->slots / slices);
}

void PassRun::launch(std::function<void()> work, std::function<void()> then) {
  if (context_.compute == nullptr) return context_.driver.run(std::move(work), std::move(then));
  work();
  context_.compute->after(context_.backend.queue(QueueKind::kCompute).record(),
                          context_.driver.expect_task(std::move(then)));
}

std::byte* PassRun::scratch() const {
  const std::size_t lane = context_.compute == nullptr ? context_.driver.worker() : 0;
  return context_.arena + pass_.worker_scratch.offset +
         static_cast<std::int64_t>(lane) * worker_scratch_bytes(pass_);
}

void PassRun::open_uses() {
  uses_.resize(pass_.uses.size());
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    Use& use = uses_[i];
    const TensorUse& planned = pass_.uses[i];
    use.planned = &planned;
    use.access = {nullptr, planned.tensor,  nullptr,          &context_.residency,
                  index_,  &context_.moved, &context_.leaving};
    if (planned.tensor >= 0) {
      use.access.tensor = &context_.plan.tensors[static_cast<std::size_t>(planned.tensor)];
      use.access.store = context_.stores[static_cast<std::size_t>(planned.tensor)];
      if (use.access.store != nullptr) {
        use.access.mapped = {use.access.store->mapped(), 0, use.access.tensor->layout.block_count(),
                             0};
      }
    } else {
      use.own = dst_range_tensor(context_.edges, section_.value(planned.value));
      use.access.tensor = &use.own;
    }
    switch (planned.role) {
      case UseRole::kStreamed:
        open_streamed(use);
        break;
      case UseRole::kRows:
        open_rows(use);
        break;
      case UseRole::kOutput:
        use.writer = std::make_shared<RowsWriter>(context_.driver, use.access, row_slots(use));
        break;
      case UseRole::kAccumulator:
        for (DstRangeRows& dst_range : use.dst_ranges) {
          dst_range.writer = std::make_shared<RowsWriter>(context_.driver, use.access);
        }
        break;
      case UseRole::kResident:
        break;  // by destination ranges
    }
  }
  if (pass_.kind == PassKind::kPropagate) open_edges();
}

bool PassRun::is_sliced(const Use& use) const {
  return pass_.slice_local_cols > 0 && use.access.tensor->layout.cols == pass_.slice_local_cols;
}

std::int64_t PassRun::slice_begin(const DstRange& dst_range, const Use& use) const {
  return is_sliced(use) ? dst_range.first_slice : 0;
}

std::int64_t PassRun::slice_end(const DstRange& dst_range, const Use& use) const {
  return is_sliced(use) ? dst_range.end_slice : use.access.tensor->layout.slice_count();
}

void PassRun::open_streamed(Use& use) {
  const PlannedTensor& tensor = *use.access.tensor;
  const std::int64_t blocks = tensor.layout.block_count();
  use.item_blocks = streamed_blocks(context_.edges, tensor);
  RowsItems items{use.item_blocks};
  for_each_dst_range(
      pass_, context_.edges.block_count(),
      [&](std::int64_t first, std::int64_t end, std::int64_t, std::int64_t) {
        const bool sliced = is_sliced(use);
        items.add({0, blocks, sliced ? first : 0, sliced ? end : tensor.layout.slice_count()});
        return true;
      });
  auto loader = std::make_unique<RowsLoader>(use.access, std::move(items));
  use.loader = loader.get();
  use.stream = std::make_unique<ItemStream>(context_.driver, std::move(loader),
                                            slots(use.planned->memory, use.planned->slots));
}

void PassRun::open_rows(Use& use) {
  const PlannedTensor& tensor = *use.access.tensor;
  const EdgeLayout& edges = context_.edges;
  const std::int64_t io_chunk = tensor.io_chunk_blocks;
  use.item_blocks = io_chunk;
  RowsItems items{io_chunk};
  for_each_dst_range(pass_, edges.block_count(),
                     [&](std::int64_t, std::int64_t, std::int64_t first, std::int64_t end) {
                       const std::int64_t row = tensor.kept.index(first * edges.block_rows);
                       const std::int64_t end_row =
                           tensor.kept.index(std::min(end * edges.block_rows, edges.vertices));
                       const std::int64_t end_io_chunk = ceil_div(end_row, item_rows(use));
                       items.add({row / item_rows(use) * io_chunk,
                                  std::min(end_io_chunk * io_chunk, tensor.layout.block_count()), 0,
                                  tensor.layout.slice_count()});
                       return true;
                     });
  auto loader = std::make_unique<RowsLoader>(use.access, std::move(items));
  use.loader = loader.get();
  use.stream = std::make_unique<ItemStream>(context_.driver, std::move(loader), row_slots(use));
}

void PassRun::open_edges() {
  const EdgeLayout& edges = context_.edges;
  edge_store_ = pass_.propagation.direction == Direction::kIn ? &context_.in : &context_.out;
  std::vector<EdgeItem> items;
  for_each_dst_range(pass_, edges.block_count(),
                     [&](std::int64_t, std::int64_t, std::int64_t first, std::int64_t end) {
                       return windows_.for_each(first, end, [&](const SpanWindow& window) {
                         for (std::int64_t span = window.new_span; span < window.end_span; ++span) {
                           items.push_back({span, window.panel});
                         }
                         return true;
                       });
                     });
  auto loader = std::make_unique<EdgeLoader>(*edge_store_, std::move(items), context_.moved.in,
                                             context_.backend.shape().host_tiles);
  edge_loader_ = loader.get();
  edges_ = std::make_unique<ItemStream>(context_.driver, std::move(loader),
                                        slots(pass_.edge_slot_memory, pass_.edge_slots));
}

// Of the destination range's rows that no resident range holds; ranges hold the first ones.
RowsPlace PassRun::dst_range_place(const DstRange& dst_range, const Use& use) const {
  const PlannedTensor& tensor = *use.access.tensor;
  const std::int64_t io_chunk = tensor.io_chunk_blocks, blocks = tensor.layout.block_count();
  const std::int64_t a_block = blocks_in(context_.edges, tensor);
  const std::int64_t end = std::min(round_up(dst_range.end_block * a_block, io_chunk), blocks);
  std::int64_t first = dst_range.first_block * a_block / io_chunk * io_chunk;
  while (first < end && use.access.range(first) >= 0) first += io_chunk;
  const Region& memory = use.planned->memory;
  const std::int64_t place = dst_range.sweep % pass_.dst_ranges_at_once;
  return {context_.arena + memory.offset + place * (memory.bytes / pass_.dst_ranges_at_once), first,
          std::max(first, end), slice_begin(dst_range, use)};
}

bool PassRun::wait(std::unique_lock<std::mutex>& lock, WaitCause cause,
                   const std::function<bool()>& ready) {
  return context_.driver.wait(
      lock, cause, [this] { advance(); }, ready, [this] { return may_step(); });
}

bool PassRun::wait_for_room(std::unique_lock<std::mutex>& lock) {
  return context_.driver.wait_for_room(lock, [this] { advance(); });
}

// Reads are asked for an item a stream at a time, and storage does them in turn: what is needed
// together comes together. What edges read comes before what steps do.
void PassRun::advance() {
  do {
    for (const bool rows : {false, true}) {
      for (bool more = true; more;) {
        more = !rows && edges_ && edges_->advance();
        for (Use& use : uses_) {
          if (rows != (use.planned->role == UseRole::kRows)) continue;
          more |= use.stream && use.stream->advance();
          for (DstRangeRows& dst_range : use.dst_ranges)
            more |= dst_range.stream && dst_range.stream->advance();
        }
      }
    }
  } while (advance_rows());
}

}  // namespace ooc
