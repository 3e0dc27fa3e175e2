// The edges of a mini-batch, cut into tiles for the edge kernels.
//
// A batch's vertices have local ids, numbered level after level: level 0 are the seeds, level l + 1
// the sources of edges into level l that weren't there before. Rows of level l are [0, rows(l)).
// Tiles are cut by segments: segment s has the edges whose destination is in level s and in none
// before. So a window of levels up to l takes whole tiles, and none of their sources lies beyond
// level l + 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/spec/edge_program.h"
#include "storage/base/types.h"
#include "storage/batches/batch_layout.h"
#include "storage/format/edge_layout.h"

namespace ooc {

// What a batch is made from; nothing of it is needed after BatchGraph::build().
struct BatchEdges {
  std::span<const std::int64_t> level_rows;  // of levels 0 to hops, at least one row
  std::span<const BatchEdge> edges;          // by destination, then source
  EdgeData data = {};
  std::span<const std::byte> records = {};  // data.bytes() an edge
  // A bit a row: its vertex has a loop in the data, and none is added. Rows of levels below the
  // last. Empty: none has.
  std::span<const std::uint64_t> loops = {};
  bool out_edges = true;  // whether anything folds edges into their sources
};

class BatchGraph {
 public:
  static constexpr std::int64_t kBlockRows = 2048, kSpanRows = 65536;

  // The edges whose destination is in levels up to one, in one direction, as an EdgeWindow takes
  // them: segment after segment, each with the same spans of streamed rows. So window span i reads
  // rows from (i % spans) * kSpanRows on. The layout's vertices are the rows that fold: those of
  // the level, or, where sources do, of the next one.
  struct Window {
    EdgeLayout layout;
    std::int64_t spans = 0;  // of a segment
    std::vector<EdgeWindow::Span> tiles;
    // Loops are added in the first segment, to rows of the level.
    const std::uint64_t* self_loops = nullptr;
  };

  BatchGraph() = default;
  BatchGraph(BatchGraph&&) = default;
  BatchGraph& operator=(BatchGraph&&) = default;

  // In the place of the batch before, whose memory it takes. Runs in the caller's TBB arena; no
  // window may be in use. Edges that lie in no level or aren't in order are a programmer's mistake.
  void build(const BatchEdges& from);

  int hops() const { return static_cast<int>(level_rows_.size()) - 1; }
  std::span<const std::int64_t> level_rows() const { return level_rows_; }
  // `level`: of destinations, below hops(). Any thread, until the next build().
  const Window& window(Direction direction, int level) const;

 private:
  // A block's edges of one segment, and their tiles, which lie in `bytes`.
  struct Block {
    struct Tile {
      std::int64_t span = 0;
      std::size_t offset = 0;
      TileView view;
    };
    Direction direction = Direction::kIn;
    int segment = 0;
    std::int64_t block = 0;
    std::int64_t first_edge = 0, end_edge = 0;  // of the edges, or of those by source
    std::vector<std::byte> bytes = {};
    std::vector<Tile> tiles = {};
  };
  // An edge on its way to the block of its source.
  struct RoutedEdge {
    std::uint32_t destination, edge;
    std::uint16_t row;
  };
  // Edges of one segment that a task routes.
  struct Chunk {
    int segment = 0;
    std::int64_t first_edge = 0, end_edge = 0;
    std::size_t first_count = 0;  // into counts_: by block of sources
  };
  struct Scratch {
    std::vector<std::uint32_t> places;  // by key: where its next edge goes
    std::vector<LocalEdge> edges;
    std::vector<std::uint32_t> order;  // of the edges' records
    std::vector<std::byte> records;
  };

  std::int64_t first_row(int segment) const;
  std::int64_t source_spans(int segment) const;
  std::int64_t first_span(const Block& block) const;
  std::int64_t end_span(const Block& block) const;
  Block& add_block(Direction direction, int segment, std::int64_t block, std::int64_t first_edge,
                   std::int64_t end_edge);
  void cut_segments(const BatchEdges& from);
  void cut_in_blocks(const BatchEdges& from);
  void route_out_edges(const BatchEdges& from);
  void place_chunks();
  void check_order(const Block& block, std::span<const BatchEdge> edges) const;
  void encode(const BatchEdges& from, Block& block, Scratch& scratch);
  template <class Work>
  void run_tasks(std::size_t count, Work&& work);
  template <class At>
  void encode_sorted(const BatchEdges& from, Block& block, Scratch& scratch,
                     std::int64_t keys_a_span, At&& at);
  void make_windows(const BatchEdges& from);
  void make_self_loops(const BatchEdges& from);
  Window window_of(Direction direction, int level, const EdgeData& data) const;
  std::size_t tiles_at(Direction direction, int segment, std::int64_t span) const;

  std::vector<std::int64_t> level_rows_;
  std::vector<std::int64_t> segment_edges_;  // where each begins, and the end
  std::vector<Block> blocks_;                // the first block_count_; others keep their memory
  std::size_t block_count_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<std::int64_t> counts_;
  std::vector<RoutedEdge> routed_;
  std::vector<std::vector<PanelTile>> tiles_;           // by direction, segment and span
  std::vector<std::vector<std::uint64_t>> self_loops_;  // by level
  std::vector<Window> windows_;                         // by direction and level
  std::vector<Scratch> scratch_;                        // by lane
};

}  // namespace ooc
