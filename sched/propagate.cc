// The propagate passes of the executor: destination blocks through their edge program.
#include <tbb/parallel_pipeline.h>

#include <algorithm>
#include <utility>

#include "sched/bound_pass.h"
#include "sched/loop_tile.h"
#include "sched/workers.h"
#include "storage/errors.h"

namespace ooc {
namespace {

struct SpanTile {
  std::int64_t span;
  TileView view;
};
using Panel = std::vector<std::vector<SpanTile>>;  // by block in the panel

std::int64_t span_of(const EdgeLayout& edges, std::int64_t block) {
  return block * edges.block_rows / edges.span_rows;
}

}  // namespace

// One destination block, of a slice-local propagation one slice of it, and its panel's tiles.
struct Executor::EdgeToken {
  std::shared_ptr<const Panel> panel;
  std::shared_ptr<const LoopTile> loops;  // null: none among these spans
  std::int64_t block = 0;
  std::int64_t block_in_panel = 0;
  std::int64_t slice = 0;
};

struct Executor::EdgeRound {
  BoundPass& pass;
  const RunState& state;
  std::int64_t slices = 1;  // tokens a block
  std::int64_t first_span = 0, end_span = 0;
  // By reduction and block: sums over the edges so far, from a block's first span to its last.
  std::vector<std::vector<ReductionTree::Partial>> partials = {};
  std::vector<void*> matrices = {};  // without the partials
};

bool Executor::propagate(BoundPass& pass, const RunState& state, const std::atomic<bool>* stop) {
  const EdgeLayout& edges = dataset_.manifest().edges;
  EdgeRound round{pass, state,
                  std::max<std::int64_t>(ceil_div(pass.pass->slice_local_cols, kSliceWidth), 1)};
  round.partials.resize(pass.edges.reductions.size());
  for (auto& blocks : round.partials) {
    blocks.resize(static_cast<std::size_t>(edges.block_count()));
  }
  for (const ValueId id : pass.edges.matrices) {
    const auto& sums = pass.edges.reductions;
    const bool summed = std::find(sums.begin(), sums.end(), id) != sums.end();
    round.matrices.push_back(summed ? nullptr : matrix(id));
  }
  while (round.end_span < edges.span_count()) {
    round.first_span = round.end_span;
    round.end_span = std::min(round.first_span + pass.pass->span_group, edges.span_count());
    if (!propagate_spans(round, stop)) return false;
  }
  return true;
}

// Where the block's own span is among those at hand.
std::shared_ptr<const LoopTile> Executor::read_loops(const EdgeRound& round, std::int64_t block) {
  const EdgeLayout& edges = dataset_.manifest().edges;
  const std::int64_t span = span_of(edges, block);
  if (span < round.first_span || span >= round.end_span) return nullptr;
  bytes_read_ += loop_bytes(edges, block);
  return std::make_shared<const LoopTile>(make_loop_tile(dataset_, block));
}

bool Executor::propagate_spans(EdgeRound& round, const std::atomic<bool>* stop) {
  const Propagation& work = round.pass.pass->propagation;
  const EdgeFile& file = dataset_.edge_file(work.direction);
  const EdgeLayout& edges = file.layout();
  EdgeToken next;
  const auto read_panel = [&] {
    const std::int64_t panel_index = next.block / edges.panel_blocks;
    auto panel = std::make_shared<Panel>(
        static_cast<std::size_t>(std::min(edges.panel_blocks, edges.block_count() - next.block)));
    for (std::int64_t span = round.first_span; span < round.end_span; ++span) {
      for (const PanelTile& entry : file.tiles(span, panel_index)) {
        (*panel)[static_cast<std::size_t>(entry.block - next.block)].push_back({span, entry.tile});
      }
      bytes_read_ += static_cast<std::int64_t>(file.chunk_bytes(span, panel_index));
    }
    next.panel = std::move(panel);
  };
  const auto read = [&](tbb::flow_control& flow) -> EdgeToken {
    if (next.block == edges.block_count() || stopped(stop)) {
      flow.stop();
      return {};
    }
    if (next.block_in_panel == 0 && next.slice == 0) read_panel();
    if (work.loops && next.slice == 0) next.loops = read_loops(round, next.block);
    EdgeToken token = next;
    if (++next.slice == round.slices) {
      next.slice = 0;
      ++next.block;
      next.block_in_panel = next.block % edges.panel_blocks;
    }
    return token;
  };
  const auto compute = [&](const EdgeToken& token) {
    const Stopwatch stopwatch(compute_ns_);
    fold_block(round, token);
  };
  tbb::parallel_pipeline(
      tokens_in_flight(),
      tbb::make_filter<void, EdgeToken>(tbb::filter_mode::serial_in_order, read) &
          tbb::make_filter<EdgeToken, void>(tbb::filter_mode::parallel, compute));
  return !stopped(stop);
}

// Pointers of the block's rows: resident operands, accumulators (zeroed before the first span),
// matrices.
void Executor::bind_block(const EdgeRound& round, const EdgeToken& token, TileGroup& group,
                          std::vector<void*>& pointers) const {
  const EdgeBinding& edges = round.pass.edges;
  for (const ValueId id : edges.resident) {
    for (std::int64_t s = 0; s < layout(id).slice_count(); ++s) {
      pointers.push_back(const_cast<void*>(output_chunk(id, token.block, s)));
    }
  }
  const std::size_t accumulators = pointers.size();
  for (const ValueId id : edges.accumulators) {
    const TensorLayout shape = layout(id);
    const bool sliced = shape.cols == round.pass.pass->slice_local_cols;
    group.rows = shape.rows_of(token.block);
    for (std::int64_t s = 0; s < shape.slice_count(); ++s) {
      pointers.push_back(const_cast<void*>(output_chunk(id, token.block, s)));
      if (round.first_span > 0 || (sliced && s != token.slice)) continue;
      backend_.zero(pointers.back(), static_cast<std::size_t>(group.rows * shape.slice_stride(s)) *
                                         dtype_bytes(value(id).dtype));
    }
  }
  const std::size_t matrices = pointers.size();
  std::size_t sum = 0;
  for (void* matrix : round.matrices) {
    pointers.push_back(matrix);
    if (matrix != nullptr) continue;
    pointers.back() = round.partials[sum++][static_cast<std::size_t>(token.block)]->data();
  }
  group.resident = pointers.data();
  group.accumulators = pointers.data() + accumulators;
  group.matrices = pointers.data() + matrices;
}

void Executor::fold_block(EdgeRound& round, const EdgeToken& token) {
  const EdgeBinding& edges = round.pass.edges;
  const EdgeLayout& cut = dataset_.manifest().edges;
  const auto block = static_cast<std::size_t>(token.block);
  for (std::size_t i = 0; i < edges.reductions.size(); ++i) {
    auto& partial = round.partials[i][block];
    if (!partial) partial = reductions_.at(edges.reductions[i])->take();
  }
  std::vector<SpanTile> tiles = (*token.panel)[static_cast<std::size_t>(token.block_in_panel)];
  if (token.loops != nullptr) {
    const std::int64_t span = span_of(cut, token.block);
    const auto after = std::find_if(tiles.begin(), tiles.end(),
                                    [&](const SpanTile& tile) { return tile.span > span; });
    tiles.insert(after, {span, token.loops->view()});
  }
  TileGroup group;
  group.slice = token.slice;
  group.state = round.state;
  std::vector<void*> pointers;
  bind_block(round, token, group, pointers);

  std::size_t streamed = 0;
  for (const ValueId id : edges.streamed) {
    streamed += static_cast<std::size_t>(layout(id).slice_count());
  }
  std::vector<const void*> rows;
  rows.reserve(streamed * tiles.size());
  std::vector<TileGroup::Entry> entries;
  for (const SpanTile& tile : tiles) {
    entries.push_back({tile.view, rows.data() + rows.size()});
    for (const ValueId id : edges.streamed) {
      const TensorLayout shape = layout(id);
      const std::size_t element = dtype_bytes(value(id).dtype);
      for (std::int64_t s = 0; s < shape.slice_count(); ++s) {
        const std::int64_t at = tile.span * cut.span_rows * shape.slice_stride(s);
        rows.push_back(resident_slice(id, s) + static_cast<std::size_t>(at) * element);
      }
    }
  }
  group.entries = entries;
  group.scratch = worker_scratch();
  round.pass.edge_kernel->run(group);
  if (round.end_span < cut.span_count()) return;
  for (std::size_t i = 0; i < edges.reductions.size(); ++i) {
    reductions_.at(edges.reductions[i])->add(token.block, std::move(round.partials[i][block]));
  }
}

}  // namespace ooc
