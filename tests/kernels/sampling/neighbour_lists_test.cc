#include "kernels/sampling/neighbour_lists.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "storage/format/edge_file.h"
#include "tests/support/random_graph.h"

namespace ooc {
namespace {

using List = std::vector<std::uint32_t>;

// A graph of one span and one panel, in one chunk.
struct Chunk {
  EdgeLayout layout;
  std::vector<Edge> edges;  // reversed, as in edges.out: from who asks to its neighbour; in order
  EncodedTiles tiles;

  Chunk(std::int64_t vertices, std::vector<Edge> all, EdgeData data = {})
      : layout{.vertices = vertices,
               .edges = std::ssize(all),
               .block_rows = 64,
               .span_rows = 1024,
               .panel_blocks = 16,
               .data = data},
        edges(std::move(all)) {
    const EdgeKeys keys(layout.vertices, layout.span_rows);
    std::sort(edges.begin(), edges.end(),
              [&](const Edge& a, const Edge& b) { return keys.key_of(a) < keys.key_of(b); });
    TileEncoder encoder(layout);
    const std::vector<std::byte> none(std::max<std::size_t>(data.bytes(), 1));
    for (const Edge& edge : edges) encoder.add(edge, none.data());
    tiles = encoder.finish();
  }
  std::vector<PanelTile> views() const {
    std::vector<PanelTile> views;
    for (const TileHeader& header : tiles.headers) {
      TileView tile;
      tile.encoding = static_cast<TileEncoding>(header.encoding);
      tile.edge_count = header.edge_count;
      tile.row_count = header.row_count;
      tile.escape_count = header.escape_count;
      attach_tile(tile, tiles.bytes.data() + header.offset, layout.data);
      views.push_back({header.block, tile});
    }
    return views;
  }
};

List copy(std::span<const std::uint32_t> list) { return {list.begin(), list.end()}; }

TEST_CASE("lists hold the neighbours of who asks, ascending") {
  NeighbourLists lists;
  for (const std::int64_t count : {0, 300, 20000}) {  // pairs and runs
    const Chunk chunk(1000, test::random_edges(1000, count, 3));
    std::vector<std::uint8_t> asks(1024);
    for (std::size_t v = 0; v < 1000; v += 3) asks[v] = 1;
    lists.build(chunk.layout, chunk.views(), asks, {});
    std::map<std::int64_t, List> expected;
    for (const Edge& edge : chunk.edges) {
      expected[edge.source].push_back(static_cast<std::uint32_t>(edge.destination));
    }
    for (std::int64_t v = 0; v < 1000; ++v) {
      REQUIRE(copy(lists.neighbours(v)) == (v % 3 == 0 ? expected[v] : List{}));
    }
  }
}

TEST_CASE("lists are in the order of names, where there are any") {
  NeighbourLists lists;
  const Chunk chunk(10, {{1, 4}, {1, 4}, {1, 5}, {1, 7}, {2, 4}}, {.weights = true});
  const std::vector<std::uint8_t> asks(1024, 1);
  const std::vector<std::uint32_t> names{90, 80, 70, 60, 50, 40, 30, 20, 10, 0};
  lists.build(chunk.layout, chunk.views(), asks, names);
  CHECK(copy(lists.neighbours(1)) == List{7, 5, 4, 4});
  CHECK(copy(lists.edges(1)) == List{4, 3, 0, 1});  // the chunk has 2 -> 4 after 1 -> 4
  CHECK(copy(lists.neighbours(2)) == List{4});
}

TEST_CASE("edges that carry something are counted in the chunk") {
  NeighbourLists lists;
  const Chunk chunk(1000, test::random_edges(1000, 500, 4), {.weights = true});
  std::vector<std::uint8_t> asks(1024, 1);
  lists.build(chunk.layout, chunk.views(), asks, {});
  // Edges in the order of the chunk are those of the keys: by neighbour, then who asks.
  for (std::int64_t v = 0; v < 1000; ++v) {
    const auto edges = lists.edges(v), neighbours = lists.neighbours(v);
    REQUIRE(edges.size() == neighbours.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
      REQUIRE(chunk.edges[edges[i]] == Edge{v, static_cast<std::int64_t>(neighbours[i])});
    }
  }
}

}  // namespace
}  // namespace ooc
