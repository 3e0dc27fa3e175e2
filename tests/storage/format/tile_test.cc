#include "storage/format/tile.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

using namespace ooc;

namespace {

std::vector<LocalEdge> random_tile(std::size_t count, int rows, int sources, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<LocalEdge> edges(count);
  for (LocalEdge& edge : edges) {
    edge.row = static_cast<std::uint16_t>(random() % static_cast<unsigned>(rows));
    edge.source = static_cast<std::uint16_t>(random() % static_cast<unsigned>(sources));
  }
  std::sort(edges.begin(), edges.end(), [](const LocalEdge& a, const LocalEdge& b) {
    return a.row != b.row ? a.row < b.row : a.source < b.source;
  });
  return edges;
}

std::vector<std::pair<int, int>> decode(const TileView& tile) {
  std::vector<std::pair<int, int>> edges;
  for_each_edge(tile, [&](int row, int source) { edges.emplace_back(row, source); });
  return edges;
}

}  // namespace

TEST_CASE("tile: what is encoded is what is read, in the smaller encoding") {
  struct Case {
    std::size_t edges;
    int rows, sources;
    TileEncoding expected;
  };
  const Case cases[] = {
      {20000, 256, 65536, TileEncoding::kRuns},   // many edges a row
      {500, 16384, 65536, TileEncoding::kPairs},  // one edge a row
      {40, 65536, 65536, TileEncoding::kPairs},   // rows further apart than a delta reaches
      {1, 1, 1, TileEncoding::kRuns},             // a single edge: a tie
      {3000, 1, 65536, TileEncoding::kRuns},      // a star
  };
  unsigned seed = 1;
  for (const Case& c : cases) {
    const std::vector<LocalEdge> edges = random_tile(c.edges, c.rows, c.sources, seed++);
    std::vector<std::byte> bytes(16);  // tiles need not start a buffer
    TileView tile = encode_tile(edges, bytes);
    CHECK(tile.encoding == c.expected);
    CHECK(bytes.size() - 16 ==
          tile_bytes(tile.encoding, tile.edge_count, tile.row_count, tile.escape_count));
    CHECK(bytes.size() % 8 == 0);
    attach_tile(tile, bytes.data() + 16);
    CHECK(validate_tile(tile, c.rows, c.sources).empty());
    std::vector<std::pair<int, int>> expected;
    for (const LocalEdge& edge : edges) expected.emplace_back(edge.row, edge.source);
    CHECK(decode(tile) == expected);
  }
}

TEST_CASE("tile: parallel edges are kept") {
  const std::vector<LocalEdge> edges{{3, 7}, {3, 7}, {3, 7}, {300, 1}, {300, 1}};
  std::vector<std::byte> bytes;
  TileView tile = encode_tile(edges, bytes);
  attach_tile(tile, bytes.data());
  CHECK(decode(tile) ==
        std::vector<std::pair<int, int>>{{3, 7}, {3, 7}, {3, 7}, {300, 1}, {300, 1}});
}

TEST_CASE("tile: broken structure is named") {
  std::vector<std::byte> bytes;
  const std::vector<LocalEdge> edges = random_tile(2000, 64, 1000, 9);
  TileView tile = encode_tile(edges, bytes);
  REQUIRE(tile.encoding == TileEncoding::kRuns);
  attach_tile(tile, bytes.data());
  CHECK(validate_tile(tile, 63, 1000) == "a row lies outside its block");
  CHECK(validate_tile(tile, 64, 900) == "a source lies outside its span");
  auto* ends = reinterpret_cast<std::uint32_t*>(bytes.data());
  std::swap(ends[0], ends[1]);
  CHECK(validate_tile(tile, 64, 1000) == "row ends do not ascend");
  std::swap(ends[0], ends[1]);
  auto* sources = reinterpret_cast<std::uint16_t*>(bytes.data() + tile.row_count * 6);
  std::swap(sources[0], sources[ends[0] - 1]);
  CHECK(validate_tile(tile, 64, 1000) == "sources of a row do not ascend");
}

TEST_CASE("tile: bytes an edge stay within what the encodings promise") {
  std::vector<std::byte> bytes;
  encode_tile(random_tile(100000, 16384, 65536, 3), bytes);  // six edges a row
  CHECK(static_cast<double>(bytes.size()) / 100000 < 3.0);
  bytes.clear();
  encode_tile(random_tile(4000, 16384, 65536, 4), bytes);  // a quarter of an edge a row
  CHECK(static_cast<double>(bytes.size()) / 4000 < 3.01);
}
