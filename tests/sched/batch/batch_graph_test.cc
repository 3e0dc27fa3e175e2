#include "sched/batch/batch_graph.h"

#include <catch2/catch.hpp>
#include <memory>
#include <tuple>

#include "tests/sched/batch/batch_harness.h"

namespace ooc::test {
namespace {

// Who folds, whose row is read, and the edge's number among all (by its weight).
struct Folded {
  std::int64_t row, read;
  std::size_t edge;
  bool operator==(const Folded&) const = default;
};

// Of one segment, in the order in which a window takes them.
std::vector<Folded> expected_edges(const RandomBatch& batch, Direction direction, int segment) {
  std::vector<Folded> folded;
  for (std::size_t i = 0; i < batch.edges.size(); ++i) {
    if (batch.segments[i] != segment) continue;
    const BatchEdge& edge = batch.edges[i];
    folded.push_back(direction == Direction::kIn ? Folded{edge.destination, edge.source, i}
                                                 : Folded{edge.source, edge.destination, i});
  }
  const auto place = [](const Folded& one) {
    return std::tuple(one.read / BatchGraph::kSpanRows, one.row, one.read, one.edge);
  };
  std::sort(folded.begin(), folded.end(),
            [&](const Folded& a, const Folded& b) { return place(a) < place(b); });
  return folded;
}

void add_edges(const BatchGraph::Window& window, std::int64_t span, const PanelTile& at,
               std::vector<Folded>& folded) {
  CHECK(validate_tile(at.tile, BatchGraph::kBlockRows, BatchGraph::kSpanRows).empty());
  std::size_t i = 0;
  for_each_edge(at.tile, [&](std::uint16_t row, std::uint16_t read) {
    const auto edge = static_cast<std::size_t>(at.tile.weights[i]);
    if (window.layout.data.types && at.tile.types[i] != edge % 7) FAIL("a wrong type");
    folded.push_back(
        {at.block * BatchGraph::kBlockRows + row, span * BatchGraph::kSpanRows + read, edge});
    ++i;
  });
}

void check_window(const RandomBatch& batch, const BatchGraph& graph, Direction direction,
                  int level) {
  INFO("direction " << static_cast<int>(direction) << ", level " << level);
  const BatchGraph::Window& window = graph.window(direction, level);
  const auto rows = [&](int of) { return batch.level_rows[static_cast<std::size_t>(of)]; };
  const bool in = direction == Direction::kIn;
  CHECK(window.layout.vertices == rows(in ? level : level + 1));
  CHECK(window.layout.edges == batch.edges_up_to(level));
  CHECK(window.spans == ceil_div(rows(in ? level + 1 : level), BatchGraph::kSpanRows));
  REQUIRE(std::ssize(window.tiles) == window.spans * (level + 1));
  for (int segment = 0; segment <= level; ++segment) {
    std::vector<Folded> folded;
    for (std::int64_t span = 0; span < window.spans; ++span) {
      const auto at = static_cast<std::size_t>(segment * window.spans + span);
      std::int64_t last = -1;
      for (const PanelTile& tile : window.tiles[at].tiles) {
        CHECK(tile.block > last);
        last = tile.block;
        add_edges(window, span, tile, folded);
      }
      CHECK(last < window.layout.block_count());
    }
    CHECK((folded == expected_edges(batch, direction, segment)));
  }
  for (std::int64_t row = 0; row < rows(level + 1); ++row) {
    const bool there = (window.self_loops[row / 64] >> (row % 64) & 1) != 0;
    if (there != (row >= rows(level) || batch.has_loop(row))) FAIL("a wrong bit of row " << row);
  }
}

void check_graph(const RandomBatch& batch, const BatchGraph& graph) {
  REQUIRE(graph.hops() == std::ssize(batch.level_rows) - 1);
  for (int level = 0; level < graph.hops(); ++level) {
    check_window(batch, graph, Direction::kIn, level);
    check_window(batch, graph, Direction::kOut, level);
  }
}

TEST_CASE("batch graph: windows have the edges of their levels, in order, in both directions") {
  const EdgeData weights{.weights = true};
  const EdgeData both{.weights = true, .types = true};
  BatchGraph graph;  // takes one batch after the other
  for (const RandomBatch& batch : {
           random_batch({7, 30}, 3, 1, weights),
           random_batch({100, 2048, 5000}, 4, 2, both),
           random_batch({1000, 4096, 4100, 70000}, 3, 3, weights),
           random_batch({3000, 66000, 140000}, 2, 4, both),
           random_batch({5, 5, 5}, 2, 5, weights),  // no new vertices
           random_batch({10, 10000}, 0, 6, weights),
       }) {
    INFO("vertices " << batch.level_rows.back());
    graph.build(batch.from());
    check_graph(batch, graph);
  }
}

TEST_CASE("batch graph: tiles are the same for any number of workers") {
  const RandomBatch batch = random_batch({2000, 30000, 80000}, 6, 9, {.weights = true});
  BatchGraph graph;
  for (const int workers : {1, 3}) {
    with_workers(workers, [&] { graph.build(batch.from()); });
    check_graph(batch, graph);
  }
}

TEST_CASE("batch graph: without edges by source there are none, and no level beyond the last") {
  const RandomBatch batch = random_batch({10, 100}, 3, 1);
  BatchEdges from = batch.from();
  from.loops = {};
  from.out_edges = false;
  BatchGraph graph;
  graph.build(from);
  const BatchGraph::Window& window = graph.window(Direction::kIn, 0);
  CHECK(window.layout.edges == std::ssize(batch.edges));
  CHECK((window.self_loops[0] & 0x3FF) == 0);
  CHECK(window.tiles[0].tiles[0].tile.weights == nullptr);
  const auto moved = std::make_unique<BatchGraph>(std::move(graph));
  CHECK(moved->window(Direction::kIn, 0).tiles[0].tiles.size() == 1);
}

}  // namespace
}  // namespace ooc::test
