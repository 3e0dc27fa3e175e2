#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "storage/format/tensor_layout.h"
#include "storage/import/rows/vertex_order.h"
#include "tests/support/random_graph.h"

namespace ooc {
namespace {

std::vector<std::int64_t> degrees_of(const std::vector<Edge>& edges, std::int64_t vertices,
                                     bool with_out_edges) {
  std::vector<std::int64_t> degrees(static_cast<std::size_t>(vertices), 0);
  for (const Edge& edge : edges) {
    ++degrees[edge.destination];
    if (with_out_edges) ++degrees[edge.source];
  }
  return degrees;
}

std::vector<Degrees> both_degrees(const std::vector<Edge>& edges, std::int64_t vertices) {
  std::vector<Degrees> degrees(static_cast<std::size_t>(vertices));
  for (const Edge& edge : edges) {
    if (edge.source == edge.destination) {
      ++degrees[edge.source].loops;
    } else {
      ++degrees[edge.source].out;
      ++degrees[edge.destination].in;
    }
  }
  return degrees;
}

void check_permutation(std::vector<VertexIndex> order, std::int64_t vertices) {
  std::vector<VertexIndex> ids(static_cast<std::size_t>(vertices));
  std::iota(ids.begin(), ids.end(), VertexIndex{0});
  std::sort(order.begin(), order.end());
  CHECK(order == ids);
}

TEST_CASE("vertex_order: random orders are permutations that follow the seed") {
  const auto order = random_order(1000, 7);
  check_permutation(order, 1000);
  CHECK(order == random_order(1000, 7));
  CHECK(order != random_order(1000, 8));
  CHECK(random_order(1, 0) == std::vector<VertexIndex>{0});
  // Every vertex is equally likely in the first place.
  std::map<VertexIndex, int> first;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) ++first[random_order(5, seed)[0]];
  for (const auto& [vertex, count] : first) CHECK(std::abs(count - 1000) < 150);
}

TEST_CASE("vertex_order: by degree, largest first, ties by id") {
  const auto edges = test::random_edges(200, 900, 3);
  const auto degrees = degrees_of(edges, 200, true);
  std::vector<VertexIndex> expected(200);
  std::iota(expected.begin(), expected.end(), VertexIndex{0});
  std::stable_sort(expected.begin(), expected.end(),
                   [&](VertexIndex a, VertexIndex b) { return degrees[a] > degrees[b]; });
  CHECK(degree_order(both_degrees(edges, 200)) == expected);
}

TEST_CASE("vertex_order: balanced blocks carry about equally many in-edges") {
  auto edges = test::random_edges(250, 2000, 4);
  for (Edge& edge : edges) edge.destination = edge.destination * edge.destination / 250;  // skew
  const TensorLayout layout{250, 1, 32};
  const auto order = balanced_order(both_degrees(edges, 250), 32);
  check_permutation(order, 250);
  const auto degrees = degrees_of(edges, 250, false);
  std::int64_t least = 2000, most = 0;
  for (std::int64_t block = 0; block + 1 < layout.block_count(); ++block) {
    std::int64_t load = 0;
    for (std::int64_t row = 0; row < 32; ++row) load += degrees[order[block * 32 + row]];
    least = std::min(least, load);
    most = std::max(most, load);
  }
  CHECK(most - least <= *std::max_element(degrees.begin(), degrees.end()));
  // Naively: the block with the least load so far that has room.
  std::vector<std::int64_t> loads(8, 0), rows(8, 0);
  std::vector<VertexIndex> by_degree(250), expected(250);
  std::iota(by_degree.begin(), by_degree.end(), VertexIndex{0});
  std::stable_sort(by_degree.begin(), by_degree.end(),
                   [&](VertexIndex a, VertexIndex b) { return degrees[a] > degrees[b]; });
  for (const VertexIndex vertex : by_degree) {
    std::int64_t best = -1;
    for (std::int64_t block = 0; block < 8; ++block) {
      if (rows[block] == layout.rows_of(block)) continue;
      if (best < 0 || loads[block] < loads[best]) best = block;
    }
    expected[best * 32 + rows[best]++] = vertex;
    loads[best] += degrees[vertex];
  }
  CHECK(order == expected);
}

TEST_CASE("vertex_order: renumbering moves both ends, and the inverse undoes it") {
  const auto given = test::random_edges(50, 300, 5);
  const auto order = random_order(50, 1);
  const auto new_ids = inverse_order(order);
  for (VertexIndex v = 0; v < 50; ++v) CHECK(order[new_ids[v]] == v);
  auto edges = given;
  renumber_edges(edges, new_ids);
  CHECK(edges != given);
  renumber_edges(edges, order);
  CHECK(edges == given);
}

// Two rings whose members alternate: blocks of METIS's order must take the rings apart.
TEST_CASE("vertex_order: METIS brings neighbours into one block") {
  constexpr std::int64_t kVertices = 64;
  std::vector<Edge> pairs;
  for (VertexId v = 0; v < kVertices; ++v) {
    pairs.push_back({v, (v + 2) % kVertices});
    pairs.push_back({(v + 2) % kVertices, v});
  }
  const auto order = metis_order(kVertices, pairs, 32);
  check_permutation(order, kVertices);
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(order[i] % 2 == order[0] % 2);
    CHECK(order[32 + i] % 2 != order[0] % 2);
  }
  std::vector<Edge> none;
  check_permutation(metis_order(5, none, 32), 5);
}

TEST_CASE("vertex_order: a block of a balanced order has at most 1.1 times the mean") {
  // Degrees fall with a power of the rank; no vertex has more than a block's share.
  std::vector<Degrees> degrees(4096);
  for (std::size_t v = 0; v < degrees.size(); ++v) {
    degrees[(v * 2654435761u) % 4096].in = static_cast<std::int32_t>(3000 / (1 + v / 4)) + 1;
  }
  const auto order = balanced_order(degrees, 256);
  check_permutation(order, 4096);
  std::int64_t total = 0, heaviest = 0;
  for (std::size_t begin = 0; begin < order.size(); begin += 256) {
    std::int64_t load = 0;
    for (std::size_t i = begin; i < begin + 256; ++i) load += degrees[order[i]].in;
    total += load;
    heaviest = std::max(heaviest, load);
  }
  CHECK(static_cast<double>(heaviest) <= 1.1 * static_cast<double>(total) / 16);
}

}  // namespace
}  // namespace ooc
