#include "sched/batch/batch_graph.h"

#include <tbb/task_arena.h>

#include <algorithm>
#include <cstring>

#include "sched/batch/ordered_tasks.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

// Edges that a task routes at least, and tasks at most.
constexpr std::int64_t kChunkEdges = 16384, kMostChunks = 128;

constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

// Calls work(task, its lane's scratch), in the caller's arena.
template <class Work>
void BatchGraph::run_tasks(std::size_t count, Work&& work) {
  run_in_order(static_cast<std::int64_t>(count), std::ssize(scratch_),
               [&](std::int64_t task, std::int64_t lane) { work(at(task), scratch_[at(lane)]); });
}

std::int64_t BatchGraph::first_row(int segment) const {
  return segment == 0 ? 0 : level_rows_[at(segment - 1)];
}
std::int64_t BatchGraph::source_spans(int segment) const {
  return ceil_div(level_rows_[at(segment + 1)], kSpanRows);
}

// Spans of what a block's edges read: any source's, or those of the segment's destinations.
std::int64_t BatchGraph::first_span(const Block& block) const {
  return block.direction == Direction::kIn ? 0 : first_row(block.segment) / kSpanRows;
}
std::int64_t BatchGraph::end_span(const Block& block) const {
  return block.direction == Direction::kIn ? source_spans(block.segment)
                                           : ceil_div(level_rows_[at(block.segment)], kSpanRows);
}

const BatchGraph::Window& BatchGraph::window(Direction direction, int level) const {
  OOC_CHECK(level >= 0 && level < hops());
  const Window& found = windows_[at((direction == Direction::kIn ? 0 : hops()) + level)];
  OOC_CHECK(found.spans > 0);
  return found;
}

void BatchGraph::build(const BatchEdges& from) {
  OOC_CHECK(!from.level_rows.empty() && from.level_rows[0] > 0);
  OOC_CHECK(std::is_sorted(from.level_rows.begin(), from.level_rows.end()));
  OOC_CHECK(std::max(from.level_rows.back(), std::ssize(from.edges)) <= UINT32_MAX);
  OOC_CHECK(from.records.size() == from.edges.size() * from.data.bytes());
  level_rows_.assign(from.level_rows.begin(), from.level_rows.end());
  block_count_ = 0;
  const auto lanes = static_cast<std::size_t>(tbb::this_task_arena::max_concurrency());
  if (scratch_.size() < lanes) scratch_.resize(lanes);
  cut_segments(from);
  cut_in_blocks(from);
  route_out_edges(from);
  run_tasks(block_count_,
            [&](std::size_t i, Scratch& scratch) { encode(from, blocks_[i], scratch); });
  make_windows(from);
}

void BatchGraph::cut_segments(const BatchEdges& from) {
  segment_edges_.assign(1, 0);
  for (int segment = 0; segment < hops(); ++segment) {
    const auto end = std::lower_bound(
        from.edges.begin(), from.edges.end(), level_rows_[at(segment)],
        [](const BatchEdge& edge, std::int64_t row) { return edge.destination < row; });
    segment_edges_.push_back(end - from.edges.begin());
  }
  OOC_CHECK(segment_edges_.back() == std::ssize(from.edges));
}

BatchGraph::Block& BatchGraph::add_block(Direction direction, int segment, std::int64_t block,
                                         std::int64_t first_edge, std::int64_t end_edge) {
  if (block_count_ == blocks_.size()) blocks_.emplace_back();
  Block& added = blocks_[block_count_++];
  added.direction = direction;
  added.segment = segment;
  added.block = block;
  added.first_edge = first_edge;
  added.end_edge = end_edge;
  added.bytes.clear();
  added.tiles.clear();
  return added;
}

void BatchGraph::cut_in_blocks(const BatchEdges& from) {
  for (int segment = 0; segment < hops(); ++segment) {
    const auto end = from.edges.begin() + segment_edges_[at(segment + 1)];
    auto edge = from.edges.begin() + segment_edges_[at(segment)];
    while (edge < end) {
      const std::int64_t block = edge->destination / kBlockRows;
      const auto next = std::lower_bound(
          edge, end, (block + 1) * kBlockRows,
          [](const BatchEdge& one, std::int64_t row) { return one.destination < row; });
      OOC_CHECK(next > edge);
      add_block(Direction::kIn, segment, block, edge - from.edges.begin(),
                next - from.edges.begin());
      edge = next;
    }
  }
}

// To the blocks of their sources, those of a segment beside each other and in order.
void BatchGraph::route_out_edges(const BatchEdges& from) {
  chunks_.clear();
  counts_.clear();
  if (!from.out_edges) return;
  const std::int64_t a_chunk = std::max(kChunkEdges, ceil_div(std::ssize(from.edges), kMostChunks));
  std::size_t counts = 0;
  for (int segment = 0; segment < hops(); ++segment) {
    const std::int64_t end = segment_edges_[at(segment + 1)];
    for (std::int64_t edge = segment_edges_[at(segment)]; edge < end; edge += a_chunk) {
      chunks_.push_back({segment, edge, std::min(edge + a_chunk, end), counts});
      counts += at(ceil_div(level_rows_[at(segment + 1)], kBlockRows));
    }
  }
  counts_.assign(counts, 0);
  run_tasks(chunks_.size(), [&](std::size_t i, Scratch&) {
    const Chunk& chunk = chunks_[i];
    const std::int64_t rows = level_rows_[at(chunk.segment + 1)];
    const BatchEdge* const edges = from.edges.data();
    std::int64_t* const count = counts_.data() + chunk.first_count;
    for (std::int64_t edge = chunk.first_edge; edge < chunk.end_edge; ++edge) {
      const std::uint32_t source = edges[edge].source;
      OOC_CHECK(source < rows);
      ++count[source / kBlockRows];
    }
  });
  place_chunks();
  routed_.resize(from.edges.size());
  run_tasks(chunks_.size(), [&](std::size_t i, Scratch&) {
    const Chunk chunk = chunks_[i];
    const BatchEdge* const edges = from.edges.data();
    RoutedEdge* const routed = routed_.data();
    std::int64_t* const place = counts_.data() + chunk.first_count;
    for (std::int64_t edge = chunk.first_edge; edge < chunk.end_edge; ++edge) {
      const BatchEdge one = edges[edge];
      routed[place[one.source / kBlockRows]++] = {
          one.destination, static_cast<std::uint32_t>(edge),
          static_cast<std::uint16_t>(one.source % kBlockRows)};
    }
  });
}

// Turns counts into places: of a block first the first chunk's.
void BatchGraph::place_chunks() {
  for (std::size_t first = 0, end = 0; first < chunks_.size(); first = end) {
    const int segment = chunks_[first].segment;
    while (end < chunks_.size() && chunks_[end].segment == segment) ++end;
    std::int64_t place = chunks_[first].first_edge;
    const std::int64_t blocks = ceil_div(level_rows_[at(segment + 1)], kBlockRows);
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::int64_t begin = place;
      for (std::size_t i = first; i < end; ++i) {
        std::int64_t& count = counts_[chunks_[i].first_count + at(block)];
        place += count;
        count = place - count;
      }
      if (place > begin) add_block(Direction::kOut, segment, block, begin, place);
    }
  }
}

// Of all blocks together: the batch's.
void BatchGraph::check_order(const Block& block, std::span<const BatchEdge> edges) const {
  const std::int64_t end = std::min((block.block + 1) * kBlockRows, level_rows_[at(block.segment)]);
  OOC_CHECK(edges.front().destination >= first_row(block.segment));
  OOC_CHECK(edges.front().destination >= block.block * kBlockRows);
  OOC_CHECK(edges.back().destination < end);
  const auto key = [](const BatchEdge& edge) {
    return std::uint64_t{edge.destination} << 32 | edge.source;
  };
  bool sorted = true;
  for (std::size_t i = 1; i < edges.size(); ++i) sorted &= key(edges[i - 1]) <= key(edges[i]);
  OOC_CHECK(sorted);
}

void BatchGraph::encode(const BatchEdges& from, Block& block, Scratch& scratch) {
  if (block.direction == Direction::kIn) {
    const std::int64_t rows = level_rows_[at(block.segment + 1)];
    const BatchEdge* const edges = from.edges.data() + block.first_edge;
    check_order(block, {edges, at(block.end_edge - block.first_edge)});
    encode_sorted(from, block, scratch, 1, [&](std::int64_t i, auto&& place) {
      const BatchEdge& edge = edges[i];
      OOC_CHECK(edge.source < rows);
      place(edge.source / kSpanRows, static_cast<std::uint32_t>(block.first_edge + i),
            LocalEdge{static_cast<std::uint16_t>(edge.destination % kBlockRows),
                      static_cast<std::uint16_t>(edge.source % kSpanRows)});
    });
    return;
  }
  const std::int64_t first = first_span(block);
  const RoutedEdge* const edges = routed_.data() + block.first_edge;
  encode_sorted(from, block, scratch, kBlockRows, [&](std::int64_t i, auto&& place) {
    const RoutedEdge& edge = edges[i];
    place((edge.destination / kSpanRows - first) * kBlockRows + edge.row, edge.edge,
          LocalEdge{edge.row, static_cast<std::uint16_t>(edge.destination % kSpanRows)});
  });
}

// Edges by their key, in order where keys are the same; at(i, place) calls place(key, edge, ends).
// A span has its keys beside each other.
template <class At>
void BatchGraph::encode_sorted(const BatchEdges& from, Block& block, Scratch& scratch,
                               std::int64_t keys_a_span, At&& at_edge) {
  const std::int64_t count = block.end_edge - block.first_edge;
  const std::int64_t first = first_span(block), spans = end_span(block) - first;
  const std::size_t record = from.data.bytes();
  scratch.edges.resize(at(count));
  if (record > 0) scratch.order.resize(at(count));
  LocalEdge* const sorted = scratch.edges.data();
  std::uint32_t* const order = record > 0 ? scratch.order.data() : nullptr;
  // Where key k's edges begin, then, once all are placed, where k's end.
  scratch.places.assign(at(spans * keys_a_span + 1), 0);
  std::uint32_t* const places = scratch.places.data();
  for (std::int64_t i = 0; i < count; ++i) {
    at_edge(i, [&](std::int64_t key, std::uint32_t, LocalEdge) { ++places[key + 1]; });
  }
  for (std::int64_t key = 0; key < spans * keys_a_span; ++key) places[key + 1] += places[key];
  for (std::int64_t i = 0; i < count; ++i) {
    at_edge(i, [=](std::int64_t key, std::uint32_t edge, LocalEdge ends) {
      const std::uint32_t place = places[key]++;
      sorted[place] = ends;
      if (order != nullptr) order[place] = edge;
    });
  }
  std::size_t begin = 0;
  for (std::int64_t span = 0; span < spans; ++span) {
    const std::size_t end = places[(span + 1) * keys_a_span - 1];
    if (begin == end) continue;
    const std::size_t offset = block.bytes.size();
    const TileView view =
        encode_tile(std::span(scratch.edges).subspan(begin, end - begin), block.bytes);
    block.tiles.push_back({first + span, offset, view});
    if (record > 0) {
      scratch.records.resize((end - begin) * record);
      for (std::size_t i = begin; i < end; ++i) {
        std::memcpy(scratch.records.data() + (i - begin) * record,
                    from.records.data() + scratch.order[i] * record, record);
      }
      encode_tile_data(scratch.records, from.data, block.bytes);
    }
    begin = end;
  }
  for (Block::Tile& tile : block.tiles) {
    attach_tile(tile.view, block.bytes.data() + tile.offset, from.data);
  }
}

std::size_t BatchGraph::tiles_at(Direction direction, int segment, std::int64_t span) const {
  const std::int64_t spans = ceil_div(level_rows_.back(), kSpanRows);
  return at(((direction == Direction::kIn ? 0 : hops()) + segment) * spans + span);
}

void BatchGraph::make_windows(const BatchEdges& from) {
  for (std::vector<PanelTile>& tiles : tiles_) tiles.clear();
  const std::size_t lists = at(2 * hops() * ceil_div(level_rows_.back(), kSpanRows));
  if (tiles_.size() < lists) tiles_.resize(lists);
  for (std::size_t i = 0; i < block_count_; ++i) {
    const Block& block = blocks_[i];
    for (const Block::Tile& tile : block.tiles) {
      tiles_[tiles_at(block.direction, block.segment, tile.span)].push_back(
          {block.block, tile.view});
    }
  }
  make_self_loops(from);
  windows_.clear();
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    for (int level = 0; level < hops(); ++level) {
      const bool wanted = direction == Direction::kIn || from.out_edges;
      windows_.push_back(wanted ? window_of(direction, level, from.data) : Window{});
    }
  }
}

// By level: a bit for each row that gets no loop, those beyond the level among them.
void BatchGraph::make_self_loops(const BatchEdges& from) {
  self_loops_.resize(at(hops()));
  for (int level = 0; level < hops(); ++level) {
    const std::int64_t rows = level_rows_[at(level)];
    const std::size_t words = at(ceil_div(rows, std::int64_t{64}));
    std::vector<std::uint64_t>& bits = self_loops_[at(level)];
    OOC_CHECK(from.loops.empty() || from.loops.size() >= words);
    if (from.loops.empty()) {
      bits.assign(words, 0);
    } else {
      bits.assign(from.loops.begin(), from.loops.begin() + static_cast<std::ptrdiff_t>(words));
    }
    if (rows % 64 != 0) bits.back() |= ~std::uint64_t{0} << (rows % 64);
    bits.resize(at(ceil_div(level_rows_[at(level + 1)], std::int64_t{64})), ~std::uint64_t{0});
  }
}

BatchGraph::Window BatchGraph::window_of(Direction direction, int level,
                                         const EdgeData& data) const {
  const bool in = direction == Direction::kIn;
  Window window;
  window.layout.vertices = level_rows_[at(in ? level : level + 1)];
  window.layout.edges = segment_edges_[at(level + 1)];
  window.layout.block_rows = kBlockRows;
  window.layout.span_rows = kSpanRows;
  window.layout.panel_blocks = window.layout.block_count();
  window.layout.data = data;
  window.spans = ceil_div(level_rows_[at(in ? level + 1 : level)], kSpanRows);
  for (int segment = 0; segment <= level; ++segment) {
    for (std::int64_t span = 0; span < window.spans; ++span) {
      window.tiles.push_back({{}, tiles_[tiles_at(direction, segment, span)]});
    }
  }
  window.self_loops = self_loops_[at(level)].data();
  return window;
}

}  // namespace ooc
