#include "sched/run/edge_phase.h"

#include <algorithm>
#include <utility>

#include "storage/base/errors.h"

namespace ooc {

struct EdgePhase::Window : SpanWindow {
  Window(const SpanWindow& spans, std::shared_ptr<DstRange> its_dst_range)
      : SpanWindow(spans), dst_range(std::move(its_dst_range)) {}

  std::shared_ptr<DstRange> dst_range;
  std::int64_t slices_left = 0;                             // under the driver's lock
  std::vector<std::int64_t> chunks;                         // items of the edges, by span
  std::vector<std::pair<ItemStream*, std::int64_t>> items;  // of streamed rows, by span
  EdgeWindow edges;
};

// Beside each other in a panel.
struct EdgePhase::EdgeTask {
  std::shared_ptr<Window> window;
  std::int64_t first_block = 0, end_block = 0;
  std::int64_t first_slice = 0, end_slice = 0;

  std::int64_t folds() const { return (end_block - first_block) * (end_slice - first_slice); }
};

EdgePhase::EdgePhase(const PassInfo& info, const SpanWindows& windows, PassStreams& streams,
                     PassLoop& loop, RowPhase& rows)
    : info_(info), windows_(windows), streams_(streams), loop_(loop), rows_(rows) {
  if (info_.context.backend.simulated() == nullptr || info_.pass.kind == PassKind::kRow) return;
  const auto bytes = static_cast<std::int64_t>(info_.edge_store().file().payload_bytes());
  file_bytes_ = std::max<std::int64_t>(1, bytes);
}

std::int64_t EdgePhase::slices_per_block(const DstRange& dst_range) const {
  return info_.pass.slice_local_cols > 0 ? dst_range.end_slice - dst_range.first_slice : 1;
}

std::size_t EdgePhase::fold_index(const DstRange& dst_range, std::int64_t block,
                                  std::int64_t slice) const {
  return static_cast<std::size_t>((block - dst_range.first_block) * slices_per_block(dst_range) +
                                  slice - dst_range.first_slice);
}

// While one destination range goes through the steps the next one may be folded: in memory of its
// own (Pass::dst_ranges_at_once), or, where all that the one before leaves are sums, in that of the
// one before, block after block (take_memory()).
bool EdgePhase::may_begin() const {
  const std::vector<PassUse>& uses = streams_.uses();
  const bool follows = info_.bound.edges.reductions.empty() &&
                       std::none_of(uses.begin(), uses.end(), [](const PassUse& use) {
                         return use.role() == UseRole::kResident && use.memory->bytes > 0;
                       });
  const std::size_t beside = info_.pass.dst_ranges_at_once > 1 || follows ? 1 : 0;
  return rows_.under_way() <= beside;
}

bool EdgePhase::run(const std::shared_ptr<DstRange>& dst_range) {
  const auto blocks = static_cast<std::size_t>(dst_range->blocks());
  dst_range->folded.assign(blocks * static_cast<std::size_t>(slices_per_block(*dst_range)), 0);
  dst_range->partials.resize(info_.bound.edges.reductions.size());
  for (auto& by_block : dst_range->partials) by_block.resize(blocks);
  if (!load_resident(*dst_range)) return false;
  return windows_.for_each(dst_range->first_block, dst_range->end_block,
                           [&](const SpanWindow& spans) {
                             const auto window = std::make_shared<Window>(spans, dst_range);
                             if (!load_rows(*window)) return false;
                             const bool ends = window->end_span == info_.context.edges.span_count();
                             if (ends && window->first_block == dst_range->first_block) {
                               const auto lock = info_.context.driver.lock();
                               rows_.take_up(dst_range);
                             }
                             return load_edges(*window) && fold_window(window);
                           });
}

// Rows of the destination range's own vertices that edges read.
bool EdgePhase::load_resident(DstRange& dst_range) {
  auto lock = info_.context.driver.lock();
  streams_.place_dst_range(dst_range);
  streams_.load_resident(dst_range);
  for (DstRange::Rows& rows : dst_range.rows) {
    if (!rows.stream) continue;
    for (std::int64_t item = 0; item < rows.stream->loader().count(); ++item) {
      rows.stream->hold(item, 1);
      const auto ready = [&] { return rows.stream->ready(item); };
      if (!loop_.wait(lock, WaitCause::kReads, ready)) return false;
    }
  }
  streams_.resident_is_there();
  return true;
}

// Waits for them. False: stopped.
bool EdgePhase::load_rows(Window& window) {
  const std::vector<ValueId>& streamed = info_.bound.edges.streamed;
  const auto spans = static_cast<std::size_t>(window.end_span - window.first_span);
  window.edges.streamed.resize(spans * streamed.size());
  auto lock = info_.context.driver.lock();
  for (std::size_t i = 0; i < streamed.size(); ++i) {
    const PassUse& use = streams_.use_of(streamed[i], UseRole::kStreamed);
    for (std::int64_t span = window.first_span; span < window.end_span; ++span) {
      const auto at = static_cast<std::size_t>(span - window.first_span);
      SlicedRows& rows = window.edges.streamed[at * streamed.size() + i];
      if (!load_span(lock, use, span, window, rows)) return false;
    }
  }
  window.dst_range->begun_spans = std::max(window.dst_range->begun_spans, window.end_span);
  return true;
}

// The rows of one span of a streamed tensor, at a place of the order. An item may hold several
// spans; every group of blocks holds it for each of them.
bool EdgePhase::load_span(std::unique_lock<std::mutex>& lock, const PassUse& use,
                          std::int64_t place, Window& window, SlicedRows& rows) {
  const DstRange& dst_range = *window.dst_range;
  const std::int64_t span = windows_.span_at(place), spans = streams_.item_spans(use);
  const std::int64_t item = streams_.item_of_span(use, dst_range.sweep, span);
  if (place >= dst_range.begun_spans && span % spans == 0) {
    const auto ready = [&] { return use.stream->ready(item); };
    if (!loop_.wait(lock, WaitCause::kReads, ready)) return false;
    const std::int64_t end_span = std::min(span + spans, info_.context.edges.span_count());
    use.stream->hold(
        item, (end_span - span) * windows_.group_count(dst_range.first_block, dst_range.end_block));
  }
  window.items.emplace_back(use.stream.get(), item);
  rows = streams_.span_rows(dst_range, use, item, span);
  return true;
}

// Waits for its chunks. False: stopped.
bool EdgePhase::load_edges(Window& window) {
  const EdgeLayout& edges = info_.context.edges;
  DstRange& dst_range = *window.dst_range;
  ItemStream& stream = streams_.edges();
  const std::int64_t first = std::max(window.panel * edges.panel_blocks, dst_range.first_block);
  const std::int64_t end = std::min((window.panel + 1) * edges.panel_blocks, dst_range.end_block);
  std::map<std::int64_t, std::int64_t>& items = dst_range.chunks[window.panel];
  auto lock = info_.context.driver.lock();
  for (std::int64_t span = window.new_span; span < window.end_span; ++span) {
    const std::int64_t item = items[span] = edge_item_++;
    if (!loop_.wait(lock, WaitCause::kReads, [&] { return stream.ready(item); })) return false;
    stream.hold(item, windows_.group_count(first, end));
  }
  items.erase(items.begin(), items.lower_bound(window.old_span));
  for (const auto& [span, item] : items) {
    if (span < window.first_span || span >= window.end_span) continue;
    window.chunks.push_back(item);
    window.edges.spans.push_back(streams_.edge_loader().span(item, stream.data(item)));
  }
  OOC_CHECK(std::ssize(window.edges.spans) == window.end_span - window.first_span);
  return true;
}

bool EdgePhase::fold_window(const std::shared_ptr<Window>& window) {
  const DstRange& dst_range = *window->dst_range;
  const std::int64_t first = window->first_block, end = window->end_block;
  auto lock = info_.context.driver.lock();
  window->slices_left = (end - first) * slices_per_block(dst_range);
  bind(*window);
  const std::int64_t end_slice = dst_range.first_slice + slices_per_block(dst_range);
  if (!info_.context.backend.shape().runs_inline) {
    return hand_out(lock, {window, first, end, dst_range.first_slice, end_slice});
  }
  const std::int64_t a_task = blocks_a_task(dst_range);
  // Slice after slice: of the spans' rows one stays in the last-level cache.
  for (std::int64_t slice = dst_range.first_slice; slice < end_slice; ++slice) {
    for (std::int64_t block = first; block < end; block += a_task) {
      const EdgeTask task{window, block, std::min(block + a_task, end), slice, slice + 1};
      if (!hand_out(lock, task)) return false;
    }
  }
  return true;
}

// Where the operands of the window's blocks lie.
void EdgePhase::bind(Window& window) const {
  const DstRange& dst_range = *window.dst_range;
  const EdgeBinding& bound = info_.bound.edges;
  EdgeWindow& edges = window.edges;
  edges.layout = &info_.context.edges;
  edges.begins = window.first_span == 0;
  edges.first_span = windows_.span_at(window.first_span);
  edges.first_block = window.first_block;
  edges.end_block = window.end_block;
  edges.first_slice = dst_range.first_slice;
  edges.end_slice = dst_range.end_slice;
  edges.state = info_.state;
  if (info_.pass.propagation.loops) edges.self_loops = info_.context.self_loops;
  const auto rows_of = [&](ValueId id, UseRole role, std::int64_t block) {
    const std::size_t use = streams_.index_of(streams_.use_of(id, role));
    return streams_.rows_at(dst_range, use, block * info_.context.edges.block_rows);
  };
  for (std::int64_t block = window.first_block; block < window.end_block; ++block) {
    for (const ValueId id : bound.resident) {
      edges.resident.push_back(rows_of(id, UseRole::kResident, block));
    }
    for (const ValueId id : bound.accumulators) {
      edges.accumulators.push_back(rows_of(id, UseRole::kAccumulator, block));
    }
  }
  const std::vector<ValueId>& sums = bound.reductions;
  for (const ValueId id : bound.matrices) {
    const bool summed = std::find(sums.begin(), sums.end(), id) != sums.end();
    edges.matrices.push_back(summed ? nullptr : info_.section.matrix(id));
  }
  edges.partials.resize(sums.size() *
                        static_cast<std::size_t>(window.end_block - window.first_block));
}

// Some ten thousand edges are worth handing out; but every worker should have a few tasks.
std::int64_t EdgePhase::blocks_a_task(const DstRange& dst_range) const {
  constexpr double kTaskEdges = 16384;
  const EdgeLayout& edges = info_.context.edges;
  const double edges_a_block =
      static_cast<double>(edges.edges * std::min(info_.pass.span_group, edges.span_count())) /
      static_cast<double>(edges.span_count() * edges.block_count());
  const std::int64_t most =
      dst_range.blocks() * slices_per_block(dst_range) / (4 * info_.context.driver.workers());
  const auto wanted = static_cast<std::int64_t>(kTaskEdges / std::max(edges_a_block, 1.0));
  return std::max<std::int64_t>(1, std::min(wanted, most));
}

bool EdgePhase::hand_out(std::unique_lock<std::mutex>& lock, const EdgeTask& task) {
  const DstRange& dst_range = *task.window->dst_range;
  const auto of_all = [&](const auto& fits) {
    for (std::int64_t block = task.first_block; block < task.end_block; ++block) {
      if (!fits(block)) return false;
    }
    return true;
  };
  const auto in_turn = [&] {
    return of_all([&](std::int64_t block) {
      const auto first = dst_range.folded.begin() + static_cast<std::ptrdiff_t>(fold_index(
                                                        dst_range, block, task.first_slice));
      return std::all_of(first, first + (task.end_slice - task.first_slice),
                         [&](std::int64_t spans) { return spans == task.window->first_span; });
    });
  };
  if (!loop_.wait_for_room(lock) || !loop_.wait(lock, WaitCause::kWorkers, in_turn)) return false;
  const auto has_place = [&] {
    return loop_.has_scratch() &&
           of_all([&](std::int64_t block) { return take_memory(dst_range, block); });
  };
  const bool steps = rows_.under_way() > 0 && !rows_.is_first(&dst_range);
  const WaitCause cause = steps ? rows_.waits_for() : WaitCause::kWrites;
  if (task.window->first_span == 0 && !loop_.wait(lock, cause, has_place)) return false;
  loop_.launch(
      "edges", seconds_of(task), [this, task] { fold(task); }, [this, task] { finish(task); });
  return true;
}

// Edges take their bytes' share of the pass's time.
double EdgePhase::seconds_of(const EdgeTask& task) const {
  if (info_.context.backend.simulated() == nullptr) return 0;
  const EdgeLayout& edges = info_.context.edges;
  const EdgeStore& store = info_.edge_store();
  const Window& window = *task.window;
  std::int64_t bytes = 0;
  for (std::int64_t place = window.first_span; place < window.end_span; ++place) {
    bytes += store.bytes(store.file().chunk_of(windows_.span_at(place), window.panel));
  }
  const std::int64_t first_block = window.panel * edges.panel_blocks;
  const std::int64_t blocks =
      std::min(first_block + edges.panel_blocks, edges.block_count()) - first_block;
  const std::int64_t slices =
      std::max<std::int64_t>(1, ceil_div(info_.pass.slice_local_cols, std::int64_t{kSliceWidth}));
  return info_.pass.edge_seconds * static_cast<double>(bytes * task.folds()) /
         static_cast<double>(file_bytes_ * blocks * slices);
}

// Whether a block's sums have their place: rows of the destination range before, and of an earlier
// pass, have left it. It is theirs from then on.
bool EdgePhase::take_memory(const DstRange& dst_range, std::int64_t block) {
  const std::int64_t row = block * info_.context.edges.block_rows;
  const std::int64_t end =
      std::min(row + info_.context.edges.block_rows, info_.context.edges.vertices);
  return std::all_of(dst_range.rows.begin(), dst_range.rows.end(), [&](const DstRange::Rows& rows) {
    return !rows.writer || rows.writer->ready(row, end);
  });
}

void EdgePhase::fold(const EdgeTask& task) {
  EdgeWindow& edges = task.window->edges;
  DstRange& dst_range = *task.window->dst_range;
  const std::vector<ValueId>& sums = info_.bound.edges.reductions;
  for (std::int64_t block = task.first_block; block < task.end_block; ++block) {
    const auto in_range = static_cast<std::size_t>(block - dst_range.first_block);
    const auto in_window = static_cast<std::size_t>(block - edges.first_block);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      std::byte*& partial = dst_range.partials[i][in_range];
      if (partial == nullptr) partial = info_.section.reductions.at(sums[i])->take();
      edges.partials[in_window * sums.size() + i] = partial;
    }
  }
  info_.bound.edge_work->run(
      edges, {task.first_block, task.end_block, task.first_slice, task.end_slice, loop_.scratch()});
  if (task.window->end_span < info_.context.edges.span_count()) return;
  for (std::int64_t block = task.first_block; block < task.end_block; ++block) {
    const auto in_range = static_cast<std::size_t>(block - dst_range.first_block);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      info_.section.reductions.at(sums[i])->add(block, dst_range.partials[i][in_range]);
    }
  }
}

void EdgePhase::finish(const EdgeTask& task) {
  Window& window = *task.window;
  const std::int64_t spans = window.end_span - window.first_span;
  for (std::int64_t block = task.first_block; block < task.end_block; ++block) {
    for (std::int64_t slice = task.first_slice; slice < task.end_slice; ++slice) {
      window.dst_range->folded[fold_index(*window.dst_range, block, slice)] +=
          static_cast<std::int32_t>(spans);
    }
  }
  const bool folded = window.end_span == info_.context.edges.span_count();
  if (folded && info_.pass.steps.empty()) info_.context.driver.wake();  // the rows may go out
  if ((window.slices_left -= task.folds()) > 0) return;
  for (const std::int64_t item : window.chunks) streams_.edges().release(item);
  for (const auto& [stream, item] : window.items) stream->release(item);
}

}  // namespace ooc
