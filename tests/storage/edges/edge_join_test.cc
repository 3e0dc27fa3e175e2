#include "storage/edges/edge_join.h"

#include <tbb/global_control.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <ostream>
#include <random>
#include <set>

#include "storage/base/errors.h"
#include "storage/dataset/dataset_writer.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/random_graph.h"

using namespace ooc;
using test::MemoryFileSystem;

namespace {

// An edge and what it carries, for comparison.
struct Loaded {
  VertexId source, destination;
  float weight = 1;
  int type = 0;
  float feature = 1;
  auto operator<=>(const Loaded&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Loaded& e) {
  return out << e.source << "->" << e.destination << " w" << e.weight << " t" << e.type << " f"
             << e.feature;
}
using Graph = std::vector<Loaded>;  // in the order of the input

constexpr EdgeData kAll{.weights = true, .types = true, .feature_cols = 1};

std::vector<std::byte> data_of(const Graph& graph, const EdgeData& data) {
  std::vector<std::byte> bytes(graph.size() * data.bytes());
  for (std::size_t i = 0; i < graph.size() && data.bytes() > 0; ++i) {
    std::byte* const at = bytes.data() + i * data.bytes();
    const auto type = static_cast<std::uint16_t>(graph[i].type);
    std::memcpy(at, &graph[i].weight, sizeof(float));
    if (data.types) std::memcpy(at + data.type_offset(), &type, sizeof(type));
    std::memcpy(at + data.feature_offset(), &graph[i].feature, data.feature_bytes());
  }
  return bytes;
}

Graph random_graph(std::int64_t vertices, std::int64_t count, std::uint64_t seed, bool with_data) {
  std::mt19937_64 random(seed);
  Graph graph;
  for (const Edge& edge : test::random_edges(vertices, count, seed)) {
    Loaded loaded{edge.source, edge.destination};
    if (with_data) {
      loaded.weight = static_cast<float>(random() % 64) / 4;
      loaded.type = static_cast<int>(random() % 3);
      loaded.feature = static_cast<float>(random() % 64);
    }
    graph.push_back(loaded);
  }
  return graph;
}

// The same by other means: maps of pairs instead of sorted keys.
Graph naive_transform(const Graph& given, std::int64_t vertices, const EdgeTransforms& transforms,
                      bool with_data) {
  std::map<std::pair<VertexId, VertexId>, Graph> pairs;
  for (const Loaded& edge : given) pairs[{edge.source, edge.destination}].push_back(edge);
  if (transforms.coalesce != Coalesce::kKeep) {
    for (auto& [pair, edges] : pairs) {
      std::map<int, Graph> by_type;
      for (const Loaded& edge : edges) by_type[edge.type].push_back(edge);
      Graph merged;
      for (const auto& [type, same] : by_type) {
        Loaded one = same[0];
        for (std::size_t i = 1; with_data && i < same.size(); ++i) {
          if (transforms.coalesce == Coalesce::kMax) {
            one.weight = std::max(one.weight, same[i].weight);
            one.feature = std::max(one.feature, same[i].feature);
          } else if (transforms.coalesce != Coalesce::kFirst) {
            one.weight += same[i].weight;
            one.feature += same[i].feature;
          }
        }
        if (with_data && transforms.coalesce == Coalesce::kMean) {
          one.weight /= static_cast<float>(same.size());
          one.feature /= static_cast<float>(same.size());
        }
        // The reverse copies the first; after merging that is the type that came first.
        const auto place = std::find_if(edges.begin(), edges.end(),
                                        [&](const Loaded& edge) { return edge.type == type; });
        one.source = place - edges.begin();  // for the order, see below
        merged.push_back(one);
      }
      std::sort(merged.begin(), merged.end(),
                [](const Loaded& a, const Loaded& b) { return a.source < b.source; });
      for (Loaded& edge : merged) edge.source = pair.first;
      edges = merged;
    }
  }
  if (transforms.undirected) {
    std::vector<Loaded> missing;
    for (const auto& [pair, edges] : pairs) {
      if (pairs.contains({pair.second, pair.first})) continue;
      Loaded reverse = edges[0];
      std::swap(reverse.source, reverse.destination);
      missing.push_back(reverse);
    }
    for (const Loaded& edge : missing) pairs[{edge.source, edge.destination}].push_back(edge);
  }
  for (VertexId v = 0; v < vertices; ++v) {
    if (transforms.self_loops == SelfLoops::kDrop) pairs.erase({v, v});
    if (transforms.self_loops == SelfLoops::kAddRemaining && !pairs.contains({v, v})) {
      pairs[{v, v}].push_back({v, v});
    }
  }
  Graph out;
  for (const auto& [pair, edges] : pairs) out.insert(out.end(), edges.begin(), edges.end());
  std::sort(out.begin(), out.end());
  return out;
}

Graph edges_of(const Dataset& dataset, Direction direction) {
  const EdgeFile& file = dataset.edge_file(direction);
  const EdgeLayout& layout = file.layout();
  Graph graph;
  for (std::int64_t span = 0; span < layout.span_count(); ++span) {
    for (std::int64_t panel = 0; panel < layout.panel_count(); ++panel) {
      for (const PanelTile& entry : file.tiles(span, panel)) {
        std::size_t i = 0;
        for_each_edge(entry.tile, [&](std::uint16_t row, std::uint16_t source) {
          Loaded edge{span * layout.span_rows + source, entry.block * layout.block_rows + row};
          if (direction == Direction::kOut) std::swap(edge.source, edge.destination);
          if (entry.tile.weights) edge.weight = entry.tile.weights[i];
          if (entry.tile.types) edge.type = entry.tile.types[i];
          if (entry.tile.features) edge.feature = entry.tile.features[i];
          graph.push_back(edge);
          ++i;
        });
      }
    }
  }
  std::sort(graph.begin(), graph.end());
  return graph;
}

struct Stored {
  Graph in, out;
  EdgeCounts counts;
  bool symmetric = false;
  std::vector<std::byte> in_bytes;
};

constexpr std::int64_t kAmple = std::int64_t{1} << 30;

Stored store(const Graph& graph, std::int64_t vertices, const EdgeTransforms& transforms,
             const EdgeData& data, std::size_t run_edges = 97, std::int64_t memory = kAmple) {
  MemoryFileSystem files;
  DatasetWriter writer(files, "/g.ooc", false, vertices, 16);
  EdgeLayout layout = choose_edge_layout(vertices, static_cast<std::int64_t>(graph.size()), 16);
  layout.panel_blocks = std::min<std::int64_t>(layout.panel_blocks, 2);
  layout.data = data;
  EdgeSorter sorter(files, writer.scratch_path("edges"), {vertices, layout.span_rows}, data);
  std::uint64_t number = 0;
  for (std::size_t begin = 0; begin < graph.size(); begin += run_edges) {
    const std::size_t end = std::min(begin + run_edges, graph.size());
    std::vector<Edge> edges;
    for (std::size_t i = begin; i < end; ++i) {
      edges.push_back({graph[i].source, graph[i].destination});
    }
    sorter.add(number++, edges, data_of(Graph(graph.begin() + begin, graph.begin() + end), data));
  }
  sorter.finish();
  Stored stored;
  stored.counts = writer.write_edges(
      sorter, {.layout = layout, .transforms = transforms, .memory_bytes = memory}, {});
  writer.manifest().edge_types = data.types ? 3 : 0;
  writer.write_ids({});
  writer.commit();
  const Dataset dataset = Dataset::open(files, "/g.ooc", VerifyPolicy::kFirst);
  dataset.verify();
  stored.in = edges_of(dataset, Direction::kIn);
  stored.out = edges_of(dataset, Direction::kOut);
  stored.symmetric = dataset.manifest().symmetric;
  stored.in_bytes = read_file(files, "/g.ooc/edges.in");
  return stored;
}

}  // namespace

TEST_CASE("edge_join: every combination of transforms equals the naive one, in both directions") {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const std::int64_t vertices = 1 + static_cast<std::int64_t>(seed * 3);
    for (const bool with_data : {false, true}) {
      const Graph given =
          random_graph(vertices, static_cast<std::int64_t>(seed * seed), seed, with_data);
      for (const bool undirected : {false, true}) {
        for (const SelfLoops loops :
             {SelfLoops::kKeep, SelfLoops::kAddRemaining, SelfLoops::kDrop}) {
          for (const Coalesce coalesce : {Coalesce::kKeep, Coalesce::kFirst, Coalesce::kSum,
                                          Coalesce::kMean, Coalesce::kMax}) {
            const EdgeTransforms transforms{undirected, loops, coalesce};
            const Stored stored =
                store(given, vertices, transforms, with_data ? kAll : EdgeData{}, 7);
            const Graph expected = naive_transform(given, vertices, transforms, with_data);
            REQUIRE(stored.in == expected);
            REQUIRE(stored.out == expected);
            CHECK(stored.counts.stored == static_cast<std::int64_t>(expected.size()));
          }
        }
      }
    }
  }
}

TEST_CASE("edge_join: a pair joined both ways, and a loop, get no reverse edge") {
  const Graph given = {{0, 1}, {1, 0}, {0, 1}, {2, 2}, {3, 2}, {3, 2}};
  const Stored stored = store(given, 4, {.undirected = true}, {});
  CHECK(stored.in == Graph{{0, 1}, {0, 1}, {1, 0}, {2, 2}, {2, 3}, {3, 2}, {3, 2}});
  CHECK_FALSE(stored.symmetric);  // in multiplicities
}

TEST_CASE("edge_join: one file serves both directions exactly where the graph is symmetric") {
  const std::vector<Edge> edges = test::with_reverse(test::random_edges(200, 900, 5));
  Graph graph;
  for (const Edge& edge : edges) graph.push_back({edge.source, edge.destination});
  CHECK(store(graph, 200, {}, {}).symmetric);
  Graph last = graph;
  last.push_back({199, 198});  // the first difference comes late
  const Stored stored = store(last, 200, {}, {});
  CHECK_FALSE(stored.symmetric);
  CHECK(stored.in == stored.out);
  for (Loaded& edge : graph) edge.weight = static_cast<float>(edge.source * edge.destination);
  CHECK(store(graph, 200, {.coalesce = Coalesce::kFirst}, {.weights = true}).symmetric);
  graph[0].weight = -1;
  CHECK_FALSE(store(graph, 200, {}, {.weights = true}).symmetric);
}

TEST_CASE("edge_join: the findings count what was given") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Graph given = random_graph(9, 70, seed, false);
    std::set<std::pair<VertexId, VertexId>> unique;
    std::set<VertexId> reached;
    std::int64_t loops = 0, distinct = 0, reciprocal = 0;
    for (const Loaded& edge : given) {
      unique.emplace(edge.source, edge.destination);
      reached.insert(edge.destination);
      loops += edge.source == edge.destination;
    }
    for (const auto& [u, v] : unique) {
      distinct += u != v;
      reciprocal += u != v && unique.contains({v, u});
    }
    const EdgeCounts counts = store(given, 9, {true, SelfLoops::kDrop, Coalesce::kSum}, {}).counts;
    CHECK(counts.given.edges == 70);
    CHECK(counts.given.self_loops == loops);
    CHECK(counts.given.duplicates == 70 - static_cast<std::int64_t>(unique.size()));
    CHECK(counts.given.distinct == distinct);
    CHECK(counts.given.reciprocal == reciprocal);
    CHECK(counts.given_without_in_edges == 9 - static_cast<std::int64_t>(reached.size()));
  }
}

TEST_CASE("edge_join: the same bytes whatever the memory, the runs and the threads") {
  const Graph given = random_graph(300, 8000, 3, true);
  const EdgeTransforms transforms{true, SelfLoops::kAddRemaining, Coalesce::kSum};
  const Stored whole = store(given, 300, transforms, kAll, given.size());
  CHECK(store(given, 300, transforms, kAll, 50, 4'000'000).in_bytes == whole.in_bytes);
  const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
  CHECK(store(given, 300, transforms, kAll, 1000).in_bytes == whole.in_bytes);
}

TEST_CASE("edge_join: too little memory for a tile is said, with how much is missing") {
  const Graph given = random_graph(16, 50000, 3, false);  // one block
  CHECK_THROWS_AS(store(given, 16, {}, {}, 1000, 100'000), BudgetError);
}
