// The edge work of a pass: one group of blocks after the other takes a window of spans.
#include <algorithm>
#include <span>
#include <utility>

#include "sched/plan/io_chunks.h"
#include "sched/run/pass_run.h"
#include "storage/base/errors.h"

namespace ooc {

struct PassRun::Window : SpanWindow {
  Window(const SpanWindow& spans, std::shared_ptr<DstRange> its_dst_range)
      : SpanWindow(spans), dst_range(std::move(its_dst_range)) {}

  std::shared_ptr<DstRange> dst_range;
  std::int64_t slices_left = 0;                             // under the driver's lock
  std::vector<std::int64_t> chunks;                         // items of the edges, by span
  std::vector<std::pair<ItemStream*, std::int64_t>> items;  // of streamed rows, by span
  EdgeWindow edges;
};

// Beside each other in a panel.
struct PassRun::EdgeTask {
  std::shared_ptr<Window> window;
  std::int64_t first_block = 0, end_block = 0;
  std::int64_t slice = 0;
};

std::int64_t PassRun::slices_per_block(const DstRange& dst_range) const {
  return pass_.slice_local_cols > 0 ? dst_range.end_slice - dst_range.first_slice : 1;
}

std::size_t PassRun::fold_index(const DstRange& dst_range, std::int64_t block,
                                std::int64_t slice) const {
  return static_cast<std::size_t>((block - dst_range.first_block) * slices_per_block(dst_range) +
                                  slice - dst_range.first_slice);
}

// Over all spans.
bool PassRun::folded(const DstRange& dst_range, std::int64_t block) const {
  const auto first = dst_range.folded.begin() + static_cast<std::ptrdiff_t>(fold_index(
                                                    dst_range, block, dst_range.first_slice));
  return std::all_of(first, first + slices_per_block(dst_range),
                     [&](std::int32_t folded) { return folded == context_.edges.span_count(); });
}

bool PassRun::propagate_dst_range(const std::shared_ptr<DstRange>& dst_range) {
  const EdgeLayout& edges = context_.edges;
  const auto blocks = static_cast<std::size_t>(dst_range->end_block - dst_range->first_block);
  dst_range->folded.assign(blocks * static_cast<std::size_t>(slices_per_block(*dst_range)), 0);
  dst_range->partials.resize(bound_.edges.reductions.size());
  for (auto& by_block : dst_range->partials) by_block.resize(blocks);
  for (Use& use : uses_) {
    const UseRole role = use.planned->role;
    if (role != UseRole::kAccumulator && role != UseRole::kResident) continue;
    const auto lock = context_.driver.lock();
    DstRangeRows& rows = use.dst_ranges[dst_range->place];
    rows.rows = dst_range_place(*dst_range, use);
    if (role == UseRole::kResident) continue;
    rows.writer->set_dst_range(rows.rows, slice_end(*dst_range, use));
    OOC_CHECK(rows.writer->ready(first_row(*dst_range), end_row(*dst_range)));
  }
  if (!load_resident(*dst_range)) return false;
  return windows_.for_each(dst_range->first_block, dst_range->end_block,
                           [&](const SpanWindow& spans) {
                             const auto window = std::make_shared<Window>(spans, dst_range);
                             if (!load_rows(*window)) return false;
                             const bool ends = window->end_span == edges.span_count();
                             if (ends && window->first_block == dst_range->first_block)
                               take_up_rows(dst_range);
                             return load_edges(*window) && fold_window(window);
                           });
}

// Rows of the destination range's own vertices that edges read.
bool PassRun::load_resident(const DstRange& dst_range) {
  const EdgeLayout& edges = context_.edges;
  auto lock = context_.driver.lock();
  for (Use& use : uses_) {
    if (use.planned->role != UseRole::kResident) continue;
    const PlannedTensor& tensor = *use.access.tensor;
    const std::int64_t io_chunk = tensor.io_chunk_blocks, a_block = blocks_in(edges, tensor);
    const std::int64_t end =
        std::min(round_up(dst_range.end_block * a_block, io_chunk), tensor.layout.block_count());
    RowsItems items{io_chunk};
    items.add({dst_range.first_block * a_block / io_chunk * io_chunk, end,
               slice_begin(dst_range, use), slice_end(dst_range, use)});
    DstRangeRows& rows = use.dst_ranges[dst_range.place];
    // The destination range before is done with its rows, whose memory this one takes.
    if (pass_.dst_ranges_at_once == 1) use.dst_ranges[1 - dst_range.place].stream.reset();
    auto loader = std::make_unique<RowsLoader>(use.access, std::move(items), rows.rows);
    rows.stream = std::make_unique<ItemStream>(context_.driver, std::move(loader), Slots());
  }
  for (Use& use : uses_) {
    if (use.planned->role != UseRole::kResident) continue;
    ItemStream& stream = *use.dst_ranges[dst_range.place].stream;
    for (std::int64_t item = 0; item < stream.loader().count(); ++item) {
      stream.hold(item, 1);
      if (!wait(lock, WaitCause::kReads, [&] { return stream.ready(item); })) return false;
    }
  }
  return true;
}

// Waits for them. False: stopped.
bool PassRun::load_rows(Window& window) {
  const auto spans = static_cast<std::size_t>(window.end_span - window.first_span);
  window.edges.streamed.resize(spans * bound_.edges.streamed.size());
  auto lock = context_.driver.lock();
  for (std::size_t i = 0; i < bound_.edges.streamed.size(); ++i) {
    Use& use = use_of(bound_.edges.streamed[i], UseRole::kStreamed);
    for (std::int64_t span = window.first_span; span < window.end_span; ++span) {
      const auto at = static_cast<std::size_t>(span - window.first_span);
      SlicedRows& rows = window.edges.streamed[at * bound_.edges.streamed.size() + i];
      if (!add_span(lock, use, span, window, rows)) return false;
    }
  }
  window.dst_range->begun_spans = std::max(window.dst_range->begun_spans, window.end_span);
  return true;
}

// The rows of one span of a streamed tensor. An item may hold several spans; every group of blocks
// holds it for each of them.
bool PassRun::add_span(std::unique_lock<std::mutex>& lock, Use& use, std::int64_t span,
                       Window& window, SlicedRows& rows) {
  const EdgeLayout& edges = context_.edges;
  const DstRange& dst_range = *window.dst_range;
  const TensorLayout& layout = use.access.tensor->layout;
  const std::int64_t span_blocks = edges.span_rows / layout.block_rows;
  const std::int64_t block = span * span_blocks;
  const std::int64_t items = ceil_div(layout.block_count(), use.item_blocks);
  const std::int64_t item = dst_range.sweep * items + block / use.item_blocks;
  if (span >= dst_range.begun_spans && block % use.item_blocks == 0) {
    if (!wait(lock, WaitCause::kReads, [&] { return use.stream->ready(item); })) return false;
    const std::int64_t end_span =
        std::min(span + use.item_blocks / span_blocks, edges.span_count());
    use.stream->hold(
        item, (end_span - span) * windows_.group_count(dst_range.first_block, dst_range.end_block));
  }
  window.items.emplace_back(use.stream.get(), item);
  const RowsPlace place = use.loader->rows(item, use.stream->data(item));
  rows = sliced_rows(slice_begin(dst_range, use), slice_end(dst_range, use), layout.slice_count(),
                     [&](std::int64_t slice) {
                       return place.at(*use.access.tensor, span * edges.span_rows, slice);
                     });
  return true;
}

// Waits for its chunks. False: stopped.
bool PassRun::load_edges(Window& window) {
  const EdgeLayout& edges = context_.edges;
  DstRange& dst_range = *window.dst_range;
  const std::int64_t first = std::max(window.panel * edges.panel_blocks, dst_range.first_block);
  const std::int64_t end = std::min((window.panel + 1) * edges.panel_blocks, dst_range.end_block);
  std::map<std::int64_t, std::int64_t>& items = dst_range.chunks[window.panel];
  auto lock = context_.driver.lock();
  for (std::int64_t span = window.new_span; span < window.end_span; ++span) {
    const std::int64_t item = items[span] = edge_item_++;
    if (!wait(lock, WaitCause::kReads, [&] { return edges_->ready(item); })) return false;
    edges_->hold(item, windows_.group_count(first, end));
  }
  items.erase(items.begin(), items.lower_bound(window.first_span));  // no group comes back
  for (const auto& [span, item] : items) {
    if (span >= window.end_span) continue;
    window.chunks.push_back(item);
    window.edges.spans.push_back(edge_loader_->span(item, edges_->data(item)));
  }
  return true;
}

bool PassRun::fold_window(const std::shared_ptr<Window>& window) {
  const DstRange& dst_range = *window->dst_range;
  const std::int64_t first = window->first_block, end = window->end_block;
  auto lock = context_.driver.lock();
  window->slices_left = (end - first) * slices_per_block(dst_range);
  bind_edges(*window);
  const std::int64_t a_task = blocks_a_task(dst_range);
  // Slice after slice: of the spans' rows one stays in the last-level cache.
  for (std::int64_t at = 0; at < slices_per_block(dst_range); ++at) {
    for (std::int64_t block = first; block < end; block += a_task) {
      const EdgeTask task{window, block, std::min(block + a_task, end), dst_range.first_slice + at};
      if (!hand_out(lock, task)) return false;
    }
  }
  return true;
}

bool PassRun::hand_out(std::unique_lock<std::mutex>& lock, const EdgeTask& task) {
  const DstRange& dst_range = *task.window->dst_range;
  const auto of_all = [&](const auto& fits) {
    for (std::int64_t block = task.first_block; block < task.end_block; ++block) {
      if (!fits(block)) return false;
    }
    return true;
  };
  const auto in_turn = [&] {
    return of_all([&](std::int64_t block) {
      return dst_range.folded[fold_index(dst_range, block, task.slice)] == task.window->first_span;
    });
  };
  if (!wait_for_room(lock) || !wait(lock, WaitCause::kWorkers, in_turn)) return false;
  const auto has_place = [&] {
    return has_scratch() &&
           of_all([&](std::int64_t block) { return has_memory(dst_range, block, task.slice); });
  };
  const bool steps = !rows_.empty() && rows_.front() != task.window->dst_range;
  const WaitCause cause = steps ? rows_wait_ : WaitCause::kWrites;
  if (task.window->first_span == 0 && !wait(lock, cause, has_place)) return false;
  launch([this, task] { fold(task); }, [this, task] { finish_task(task); });
  return true;
}

// Whether the rows of the destination range before, and of an earlier pass, have left what a block
// folds into.
bool PassRun::has_memory(const DstRange& dst_range, std::int64_t block, std::int64_t slice) const {
  const std::int64_t row = block * context_.edges.block_rows;
  const std::int64_t last = std::min(row + context_.edges.block_rows, context_.edges.vertices) - 1;
  return std::all_of(uses_.begin(), uses_.end(), [&](const Use& use) {
    if (use.planned->role != UseRole::kAccumulator) return true;
    const RowsWriter& before = *use.dst_ranges[1 - dst_range.place].writer;
    const PlannedTensor& tensor = *use.access.tensor;
    for (std::int64_t s = slice_begin(dst_range, use); s < slice_end(dst_range, use); ++s) {
      if (is_sliced(use) && s != slice) continue;
      const auto row_bytes =
          tensor.layout.slice_stride(s) * static_cast<std::int64_t>(dtype_bytes(tensor.dtype));
      const std::span<const std::byte> memory{row_address(dst_range, use, row, s),
                                              row_address(dst_range, use, last, s) + row_bytes};
      if (before.contains(memory) || context_.leaving.lie_in(memory)) return false;
    }
    return true;
  });
}

// Some ten thousand edges are worth handing out; but every worker should have a few tasks.
std::int64_t PassRun::blocks_a_task(const DstRange& dst_range) const {
  constexpr double kTaskEdges = 16384;
  const EdgeLayout& edges = context_.edges;
  const double edges_a_block =
      static_cast<double>(edges.edges * std::min(pass_.span_group, edges.span_count())) /
      static_cast<double>(edges.span_count() * edges.block_count());
  const std::int64_t most = (dst_range.end_block - dst_range.first_block) *
                            slices_per_block(dst_range) / (4 * context_.driver.workers());
  const auto wanted = static_cast<std::int64_t>(kTaskEdges / std::max(edges_a_block, 1.0));
  return std::max<std::int64_t>(1, std::min(wanted, most));
}

void PassRun::finish_task(const EdgeTask& task) {
  Window& window = *task.window;
  const std::int64_t spans = window.end_span - window.first_span;
  for (std::int64_t block = task.first_block; block < task.end_block; ++block) {
    window.dst_range->folded[fold_index(*window.dst_range, block, task.slice)] +=
        static_cast<std::int32_t>(spans);
  }
  const bool folded = window.end_span == context_.edges.span_count();
  if (folded && pass_.steps.empty()) context_.driver.wake();  // the rows may go out
  if ((window.slices_left -= task.end_block - task.first_block) > 0) return;
  for (const std::int64_t item : window.chunks) edges_->release(item);
  for (const auto& [stream, item] : window.items) stream->release(item);
}

PassRun::Use& PassRun::use_of(ValueId value, UseRole role) {
  return const_cast<Use&>(std::as_const(*this).use_of(value, role));
}

const PassRun::Use& PassRun::use_of(ValueId value, UseRole role) const {
  const auto use = std::find_if(uses_.begin(), uses_.end(), [&](const Use& candidate) {
    return candidate.planned->role == role && candidate.planned->value == value;
  });
  OOC_CHECK(use != uses_.end());
  return *use;
}

// Where the operands of the window's blocks lie.
void PassRun::bind_edges(Window& window) const {
  const DstRange& dst_range = *window.dst_range;
  EdgeWindow& edges = window.edges;
  edges.layout = &context_.edges;
  edges.first_span = window.first_span;
  edges.first_block = window.first_block;
  edges.end_block = window.end_block;
  edges.first_slice = dst_range.first_slice;
  edges.end_slice = dst_range.end_slice;
  edges.state = state_;
  if (pass_.propagation.loops) edges.self_loops = context_.self_loops;
  for (std::int64_t block = window.first_block; block < window.end_block; ++block) {
    const std::int64_t row = block * context_.edges.block_rows;
    for (const ValueId id : bound_.edges.resident) {
      edges.resident.push_back(rows_at(dst_range, use_of(id, UseRole::kResident), row));
    }
    for (const ValueId id : bound_.edges.accumulators) {
      edges.accumulators.push_back(rows_at(dst_range, use_of(id, UseRole::kAccumulator), row));
    }
  }
  const std::vector<ValueId>& sums = bound_.edges.reductions;
  for (const ValueId id : bound_.edges.matrices) {
    const bool summed = std::find(sums.begin(), sums.end(), id) != sums.end();
    edges.matrices.push_back(summed ? nullptr : section_.matrix(id));
  }
  edges.partials.resize(sums.size() *
                        static_cast<std::size_t>(window.end_block - window.first_block));
}

void PassRun::fold(const EdgeTask& task) {
  EdgeWindow& edges = task.window->edges;
  DstRange& dst_range = *task.window->dst_range;
  const std::vector<ValueId>& sums = bound_.edges.reductions;
  for (std::int64_t block = task.first_block; block < task.end_block; ++block) {
    const auto in_range = static_cast<std::size_t>(block - dst_range.first_block);
    const auto in_window = static_cast<std::size_t>(block - edges.first_block);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      std::byte*& partial = dst_range.partials[i][in_range];
      if (partial == nullptr) partial = section_.reductions.at(sums[i])->take();
      edges.partials[in_window * sums.size() + i] = partial;
    }
  }
  bound_.edge_work->run(edges,
                        {task.first_block, task.end_block, task.slice, task.slice + 1, scratch()});
  if (edges.end_span() < context_.edges.span_count()) return;
  for (std::int64_t block = task.first_block; block < task.end_block; ++block) {
    const auto in_range = static_cast<std::size_t>(block - dst_range.first_block);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      section_.reductions.at(sums[i])->add(block, dst_range.partials[i][in_range]);
    }
  }
}

}  // namespace ooc
