#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>

#include "storage/import/edge_transforms.h"
#include "storage/import/vertex_order.h"
#include "storage/tensor_layout.h"
#include "tests/support/random_graph.h"

namespace ooc {
namespace {

using Pair = std::pair<VertexId, VertexId>;
using Pairs = std::multiset<Pair>;

Pairs pairs_of(const std::vector<Edge>& edges) {
  Pairs pairs;
  for (const Edge& edge : edges) pairs.emplace(edge.source, edge.destination);
  return pairs;
}

// The same by other means: sets instead of a sort.
Pairs naive_transform(const std::vector<Edge>& edges, std::int64_t vertices,
                      const EdgeTransforms& transforms) {
  Pairs pairs = pairs_of(edges);
  if (transforms.coalesce != Coalesce::kKeep) {
    const std::set<Pair> unique(pairs.begin(), pairs.end());
    pairs = Pairs(unique.begin(), unique.end());
  }
  if (transforms.undirected) {
    for (const auto& [u, v] : std::set<Pair>(pairs.begin(), pairs.end())) {
      if (pairs.count({v, u}) == 0) pairs.emplace(v, u);
    }
  }
  for (VertexId v = 0; v < vertices; ++v) {
    if (transforms.self_loops == SelfLoops::kDrop) pairs.erase({v, v});
    if (transforms.self_loops == SelfLoops::kAddRemaining && pairs.count({v, v}) == 0) {
      pairs.emplace(v, v);
    }
  }
  return pairs;
}

TEST_CASE("edge_transforms: every combination equals the naive one") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::int64_t vertices = 1 + static_cast<std::int64_t>(seed);
    const auto given = test::random_edges(vertices, static_cast<std::int64_t>(seed * seed), seed);
    for (const bool undirected : {false, true}) {
      for (const SelfLoops loops : {SelfLoops::kKeep, SelfLoops::kAddRemaining, SelfLoops::kDrop}) {
        for (const Coalesce coalesce : {Coalesce::kKeep, Coalesce::kFirst, Coalesce::kMax}) {
          const EdgeTransforms transforms{undirected, loops, coalesce};
          std::vector<Edge> edges = given;
          transform_edges(edges, vertices, transforms, Control{});
          REQUIRE(pairs_of(edges) == naive_transform(given, vertices, transforms));
        }
      }
    }
  }
}

TEST_CASE("edge_transforms: a pair joined both ways, and a loop, get no reverse edge") {
  std::vector<Edge> edges = {{0, 1}, {1, 0}, {0, 1}, {2, 2}, {3, 2}, {3, 2}};
  transform_edges(edges, 4, {.undirected = true}, Control{});
  CHECK(pairs_of(edges) == Pairs{{0, 1}, {0, 1}, {1, 0}, {2, 2}, {3, 2}, {3, 2}, {2, 3}});
}

TEST_CASE("edge_transforms: the findings count what was given") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto given = test::random_edges(9, 70, seed);
    const Pairs pairs = pairs_of(given);
    const std::set<Pair> unique(pairs.begin(), pairs.end());
    std::int64_t loops = 0, distinct = 0, reciprocal = 0;
    for (const auto& [u, v] : pairs) loops += u == v;
    for (const auto& [u, v] : unique) {
      distinct += u != v;
      reciprocal += u != v && unique.count({v, u}) > 0;
    }
    std::vector<Edge> edges = given;
    const EdgeTransforms all{true, SelfLoops::kDrop, Coalesce::kSum};
    const EdgeFindings findings = transform_edges(edges, 9, all, Control{});
    CHECK(findings.edges == 70);
    CHECK(findings.self_loops == loops);
    CHECK(findings.duplicates == 70 - static_cast<std::int64_t>(unique.size()));
    CHECK(findings.distinct == distinct);
    CHECK(findings.reciprocal == reciprocal);
  }
  CHECK(count_without_in_edges({{0, 1}, {2, 2}, {3, 1}}, 5) == 3);
}

std::vector<std::int64_t> degrees_of(const std::vector<Edge>& edges, std::int64_t vertices,
                                     bool with_out_edges) {
  std::vector<std::int64_t> degrees(static_cast<std::size_t>(vertices), 0);
  for (const Edge& edge : edges) {
    ++degrees[edge.destination];
    if (with_out_edges) ++degrees[edge.source];
  }
  return degrees;
}

void check_permutation(std::vector<VertexId> order, std::int64_t vertices) {
  std::vector<VertexId> ids(static_cast<std::size_t>(vertices));
  std::iota(ids.begin(), ids.end(), VertexId{0});
  std::sort(order.begin(), order.end());
  CHECK(order == ids);
}

TEST_CASE("vertex_order: random orders are permutations that follow the seed") {
  const auto order = random_order(1000, 7);
  check_permutation(order, 1000);
  CHECK(order == random_order(1000, 7));
  CHECK(order != random_order(1000, 8));
  CHECK(random_order(1, 0) == std::vector<VertexId>{0});
  // Every vertex is equally likely in the first place.
  std::map<VertexId, int> first;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) ++first[random_order(5, seed)[0]];
  for (const auto& [vertex, count] : first) CHECK(std::abs(count - 1000) < 150);
}

TEST_CASE("vertex_order: by degree, largest first, ties by id") {
  const auto edges = test::random_edges(200, 900, 3);
  const auto degrees = degrees_of(edges, 200, true);
  std::vector<VertexId> expected(200);
  std::iota(expected.begin(), expected.end(), VertexId{0});
  std::stable_sort(expected.begin(), expected.end(),
                   [&](VertexId a, VertexId b) { return degrees[a] > degrees[b]; });
  CHECK(degree_order(edges, 200) == expected);
}

TEST_CASE("vertex_order: balanced blocks carry about equally many in-edges") {
  auto edges = test::random_edges(250, 2000, 4);
  for (Edge& edge : edges) edge.destination = edge.destination * edge.destination / 250;  // skew
  const TensorLayout layout{250, 1, 32};
  const auto order = balanced_order(edges, 250, 32);
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
  std::vector<VertexId> by_degree(250), expected(250);
  std::iota(by_degree.begin(), by_degree.end(), VertexId{0});
  std::stable_sort(by_degree.begin(), by_degree.end(),
                   [&](VertexId a, VertexId b) { return degrees[a] > degrees[b]; });
  for (const VertexId vertex : by_degree) {
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
  for (VertexId v = 0; v < 50; ++v) CHECK(order[new_ids[v]] == v);
  auto edges = given;
  renumber_edges(edges, new_ids);
  renumber_edges(edges, order);
  CHECK(edges == given);
}

}  // namespace
}  // namespace ooc
