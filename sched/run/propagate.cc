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
  // Slice pointers of the streamed tensors, by span, at its first row.
  std::vector<std::vector<const void*>> rows;
};

// A block's part in a task.
struct PassRun::BlockEdges {
  std::int64_t block = 0;
  std::shared_ptr<const BlockLoops> loops;  // null: none among these spans
  // Of slices that are not at hand, and of matrices that are summed: null.
  std::vector<void*> resident, accumulators, matrices;
};

// Beside each other in a panel.
struct PassRun::EdgeTask {
  std::shared_ptr<Window> window;
  std::vector<BlockEdges> blocks;
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
  window.rows.resize(static_cast<std::size_t>(window.end_span - window.first_span));
  auto lock = context_.driver.lock();
  for (const ValueId id : bound_.edges.streamed) {
    const auto use = std::find_if(uses_.begin(), uses_.end(), [&](const Use& candidate) {
      return candidate.planned->role == UseRole::kStreamed && candidate.planned->value == id;
    });
    OOC_CHECK(use != uses_.end());
    for (std::int64_t span = window.first_span; span < window.end_span; ++span) {
      if (!add_span(lock, *use, span, window)) return false;
    }
  }
  window.dst_range->begun_spans = std::max(window.dst_range->begun_spans, window.end_span);
  return true;
}

// The rows of one span of a streamed tensor. An item may hold several spans; every group of blocks
// holds it for each of them.
bool PassRun::add_span(std::unique_lock<std::mutex>& lock, Use& use, std::int64_t span,
                       Window& window) {
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
  auto& rows = window.rows[static_cast<std::size_t>(span - window.first_span)];
  const RowsPlace place = use.loader->rows(item, use.stream->data(item));
  for (std::int64_t s = 0; s < layout.slice_count(); ++s) {
    const bool at_hand = slice_begin(dst_range, use) <= s && s < slice_end(dst_range, use);
    rows.push_back(at_hand ? place.at(*use.access.tensor, span * edges.span_rows, s) : nullptr);
  }
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
    if (span < window.end_span) window.chunks.push_back(item);
  }
  return true;
}

bool PassRun::fold_window(const std::shared_ptr<Window>& window) {
  const DstRange& dst_range = *window->dst_range;
  const std::int64_t first = window->first_block, end = window->end_block;
  auto lock = context_.driver.lock();
  window->slices_left = (end - first) * slices_per_block(dst_range);
  const std::int64_t a_task = blocks_a_task(dst_range);
  std::vector<std::shared_ptr<EdgeTask>> tasks;
  for (std::int64_t block = first; block < end; block += a_task) {
    auto task = std::make_shared<EdgeTask>();
    task->window = window;
    for (std::int64_t b = block; b < std::min(block + a_task, end); ++b) {
      task->blocks.push_back(bind_block(*window, b));
    }
    tasks.push_back(std::move(task));
  }
  // Slice after slice: of the spans' rows one stays in the last-level cache.
  for (std::int64_t at = 0; at < slices_per_block(dst_range); ++at) {
    for (const std::shared_ptr<EdgeTask>& task : tasks) {
      if (!hand_out(lock, task, dst_range.first_slice + at)) return false;
    }
  }
  return true;
}

bool PassRun::hand_out(std::unique_lock<std::mutex>& lock, const std::shared_ptr<EdgeTask>& task,
                       std::int64_t slice) {
  const DstRange& dst_range = *task->window->dst_range;
  const auto in_turn = [&] {
    return std::all_of(task->blocks.begin(), task->blocks.end(), [&](const BlockEdges& edges_of) {
      return dst_range.folded[fold_index(dst_range, edges_of.block, slice)] ==
             task->window->first_span;
    });
  };
  if (!wait_for_room(lock) || !wait(lock, WaitCause::kWorkers, in_turn)) return false;
  const auto has_place = [&] {
    return has_scratch() &&
           std::all_of(task->blocks.begin(), task->blocks.end(), [&](const BlockEdges& edges_of) {
             return has_memory(dst_range, edges_of.block, slice);
           });
  };
  const bool steps = !rows_.empty() && rows_.front() != task->window->dst_range;
  const WaitCause cause = steps ? rows_wait_ : WaitCause::kWrites;
  if (task->window->first_span == 0 && !wait(lock, cause, has_place)) return false;
  context_.driver.run(
      [this, task, slice] {
        for (const BlockEdges& edges_of : task->blocks) fold(*task, edges_of, slice);
      },
      [this, task, slice] { finish_task(*task, slice); });
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

void PassRun::finish_task(const EdgeTask& task, std::int64_t slice) {
  Window& window = *task.window;
  const std::int64_t spans = window.end_span - window.first_span;
  for (const BlockEdges& edges_of : task.blocks) {
    window.dst_range->folded[fold_index(*window.dst_range, edges_of.block, slice)] +=
        static_cast<std::int32_t>(spans);
  }
  const bool folded = window.end_span == context_.edges.span_count();
  if (folded && pass_.steps.empty()) context_.driver.wake();  // the rows may go out
  if ((window.slices_left -= static_cast<std::int64_t>(task.blocks.size())) > 0) return;
  for (const std::int64_t item : window.chunks) edges_->release(item);
  for (const auto& [stream, item] : window.items) stream->release(item);
}

// Where the block's own span is among those at hand.
std::shared_ptr<const BlockLoops> PassRun::loops_of(const Window& window,
                                                    std::int64_t block) const {
  if (!pass_.propagation.loops) return nullptr;
  const std::int64_t span = block * context_.edges.block_rows / context_.edges.span_rows;
  if (span < window.first_span || span >= window.end_span) return nullptr;
  return std::make_shared<const BlockLoops>(context_.edges, bound_.edges.data, block,
                                            context_.self_loops);
}

const PassRun::Use& PassRun::use_of(ValueId value, UseRole role) const {
  const auto use = std::find_if(uses_.begin(), uses_.end(), [&](const Use& candidate) {
    return candidate.planned->role == role && candidate.planned->value == value;
  });
  OOC_CHECK(use != uses_.end());
  return *use;
}

// Where the block's operands lie.
PassRun::BlockEdges PassRun::bind_block(const Window& window, std::int64_t block) const {
  const DstRange& dst_range = *window.dst_range;
  BlockEdges bound;
  bound.block = block;
  bound.loops = loops_of(window, block);
  const std::int64_t row = block * context_.edges.block_rows;
  const auto add = [&](const Use& use, std::vector<void*>& pointers) {
    for (std::int64_t s = 0; s < use.access.tensor->layout.slice_count(); ++s) {
      const bool at_hand = slice_begin(dst_range, use) <= s && s < slice_end(dst_range, use);
      pointers.push_back(at_hand ? row_address(dst_range, use, row, s) : nullptr);
    }
  };
  for (const ValueId id : bound_.edges.resident) {
    add(use_of(id, UseRole::kResident), bound.resident);
  }
  for (const ValueId id : bound_.edges.accumulators) {
    add(use_of(id, UseRole::kAccumulator), bound.accumulators);
  }
  for (const ValueId id : bound_.edges.matrices) {
    const auto& sums = bound_.edges.reductions;
    const bool summed = std::find(sums.begin(), sums.end(), id) != sums.end();
    bound.matrices.push_back(summed ? nullptr : section_.matrix(id));
  }
  return bound;
}

// Before the first span.
void PassRun::zero_accumulators(const BlockEdges& block, std::int64_t rows,
                                std::int64_t slice) const {
  auto pointer = block.accumulators.begin();
  for (const ValueId id : bound_.edges.accumulators) {
    const Use& use = use_of(id, UseRole::kAccumulator);
    const TensorLayout& shape = use.access.tensor->layout;
    for (std::int64_t s = 0; s < shape.slice_count(); ++s, ++pointer) {
      if (*pointer == nullptr || (is_sliced(use) && s != slice)) continue;
      context_.backend.zero(*pointer, static_cast<std::size_t>(rows * shape.slice_stride(s)) *
                                          dtype_bytes(use.access.tensor->dtype));
    }
  }
}

// A block's tiles of the task's spans, in order; where the data has no self loop, the added one
// after its span's.
std::vector<TileGroup::Entry> PassRun::tiles_of(const EdgeTask& task,
                                                const BlockEdges& block) const {
  const EdgeLayout& edges = context_.edges;
  const std::int64_t own_span = block.block * edges.block_rows / edges.span_rows;
  std::vector<TileGroup::Entry> entries;
  const Window& window = *task.window;
  for (std::int64_t span = window.first_span; span < window.end_span; ++span) {
    const std::int64_t at = span - window.first_span;
    const void* const* rows = window.rows[static_cast<std::size_t>(at)].data();
    const std::vector<PanelTile>& tiles =
        edge_loader_->tiles(window.chunks[static_cast<std::size_t>(at)]);
    const auto tile = std::lower_bound(
        tiles.begin(), tiles.end(), block.block,
        [](const PanelTile& entry, std::int64_t wanted) { return entry.block < wanted; });
    if (tile != tiles.end() && tile->block == block.block) entries.push_back({tile->tile, rows});
    if (block.loops != nullptr && span == own_span) entries.push_back({block.loops->view(), rows});
  }
  return entries;
}

void PassRun::fold(const EdgeTask& task, const BlockEdges& edges_of, std::int64_t slice) {
  const EdgeLayout& edges = context_.edges;
  DstRange& dst_range = *task.window->dst_range;
  const auto block = static_cast<std::size_t>(edges_of.block - dst_range.first_block);
  std::vector<void*> matrices = edges_of.matrices;
  auto sum = matrices.begin();
  for (std::size_t i = 0; i < dst_range.partials.size(); ++i) {
    auto& partial = dst_range.partials[i][block];
    if (!partial) partial = section_.reductions.at(bound_.edges.reductions[i])->take();
    sum = std::find(sum, matrices.end(), nullptr);
    *sum = partial->data();
  }
  TileGroup group;
  group.rows = std::min(edges.block_rows, edges.vertices - edges_of.block * edges.block_rows);
  group.slice = slice;
  group.state = state_;
  group.resident = edges_of.resident.data();
  group.accumulators = edges_of.accumulators.data();
  group.matrices = matrices.data();
  if (task.window->first_span == 0) zero_accumulators(edges_of, group.rows, slice);
  const std::vector<TileGroup::Entry> entries = tiles_of(task, edges_of);
  group.entries = entries;
  group.scratch = scratch();
  bound_.edge_kernel->run(group);
  if (task.window->end_span < edges.span_count()) return;
  for (std::size_t i = 0; i < dst_range.partials.size(); ++i) {
    section_.reductions.at(bound_.edges.reductions[i])
        ->add(edges_of.block, std::move(dst_range.partials[i][block]));
  }
}

}  // namespace ooc
