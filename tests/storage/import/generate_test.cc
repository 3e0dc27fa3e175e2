#include "storage/import/generate.h"

#include <tbb/global_control.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"
#include "storage/import/edges/distinct_edges.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::error_of;
using test::MemoryFileSystem;

GenerateOptions options_of(GraphKind kind, std::int64_t vertices, std::int64_t edges) {
  GenerateOptions options;
  options.kind = kind;
  options.vertices = vertices;
  options.edges = edges;
  options.features = 64;
  options.classes = 10;
  options.seed = 3;
  options.block_rows = 256;
  return options;
}

struct GeneratedGraph {
  std::vector<Edge> edges;
  std::vector<std::int32_t> labels;
};

GeneratedGraph read_graph(FileSystem& files) {
  const Dataset dataset = Dataset::open(files, "g.ooc", VerifyPolicy::kFirst);
  GeneratedGraph graph;
  const EdgeFile& file = dataset.edge_file(Direction::kIn);
  const EdgeLayout& layout = file.layout();
  for (std::int64_t span = 0; span < layout.span_count(); ++span) {
    for (std::int64_t panel = 0; panel < layout.panel_count(); ++panel) {
      for (const PanelTile& entry : file.tiles(span, panel)) {
        for_each_edge(entry.tile, [&](std::uint16_t row, std::uint16_t source) {
          graph.edges.push_back(
              {span * layout.span_rows + source, entry.block * layout.block_rows + row});
        });
      }
    }
  }
  graph.labels.resize(static_cast<std::size_t>(dataset.vertices()));
  dataset.tensor("labels")->read_rows(0, dataset.vertices(), graph.labels.data());
  return graph;
}

GeneratedGraph generate_graph(const GenerateOptions& options) {
  MemoryFileSystem files;
  generate_dataset(files, options, "g.ooc", Control{});
  return read_graph(files);
}

double inside_share(const GeneratedGraph& graph) {
  std::int64_t inside = 0;
  for (const Edge& edge : graph.edges) {
    inside += graph.labels[edge.source] == graph.labels[edge.destination];
  }
  return static_cast<double>(inside) / static_cast<double>(graph.edges.size());
}

TEST_CASE("generate: edges are distinct, no loops, and there in both directions") {
  for (const GraphKind kind : {GraphKind::kRmat, GraphKind::kSbm}) {
    for (const std::int64_t vertices : {60, 1000, 1025}) {
      const std::int64_t count = vertices == 60 ? 60 : 8000;
      const auto graph = generate_graph(options_of(kind, vertices, count));
      std::set<std::pair<VertexId, VertexId>> edges;
      for (const Edge& edge : graph.edges) {
        REQUIRE((edge.source >= 0 && edge.source < vertices));
        REQUIRE(edge.source != edge.destination);
        edges.emplace(edge.source, edge.destination);
      }
      CHECK(static_cast<std::int64_t>(graph.edges.size()) == 2 * count);
      CHECK(edges.size() == graph.edges.size());
      for (const auto& [u, v] : edges) REQUIRE(edges.count({v, u}) == 1);
      CHECK(std::set<std::int32_t>(graph.labels.begin(), graph.labels.end()).size() == 10);
    }
  }
}

TEST_CASE("generate: the options alone decide, not the number of threads") {
  for (const GraphKind kind : {GraphKind::kRmat, GraphKind::kSbm}) {
    auto options = options_of(kind, 500, 4000);
    const auto graph = generate_graph(options);
    const tbb::global_control one_thread(tbb::global_control::max_allowed_parallelism, 1);
    const auto again = generate_graph(options);
    CHECK(graph.edges == again.edges);
    CHECK(graph.labels == again.labels);
    options.seed = 4;
    CHECK(graph.edges != generate_graph(options).edges);
  }
}

TEST_CASE("generate: values are a class's, with a little noise") {
  auto options = options_of(GraphKind::kSbm, 1025, 4000);
  const std::vector<std::int32_t> labels = generate_graph(options).labels;
  options.targets = 3;
  MemoryFileSystem files;
  const Findings findings = generate_dataset(files, options, "g.ooc", Control{});
  CHECK(findings.labels == LabelKind::kValues);
  const Dataset dataset = Dataset::open(files, "g.ooc", VerifyPolicy::kFirst);
  CHECK(dataset.manifest().classes == 3);
  std::vector<float> values(1025 * 3);
  dataset.tensor("labels")->read_rows(0, 1025, values.data());
  // By class and target: the sum and the sum of squares.
  double sums[10][3] = {}, squares[10][3] = {}, count[10] = {};
  for (std::size_t v = 0; v < labels.size(); ++v) {
    ++count[labels[v]];
    for (std::size_t t = 0; t < 3; ++t) {
      const auto value = static_cast<double>(values[3 * v + t]);
      sums[labels[v]][t] += value;
      squares[labels[v]][t] += value * value;
    }
  }
  double largest = 0;
  for (std::size_t c = 0; c < 10; ++c) {
    for (std::size_t t = 0; t < 3; ++t) {
      const double mean = sums[c][t] / count[c];
      CHECK(std::sqrt(squares[c][t] / count[c] - mean * mean) == Approx(0.1).margin(0.03));
      largest = std::max(largest, std::abs(mean));
    }
  }
  CHECK(largest > 1);
}

// The first different edges, as a set finds them.
std::set<std::pair<VertexId, VertexId>> first_edges(const DrawEdge& draw, std::size_t wanted) {
  std::set<std::pair<VertexId, VertexId>> edges;
  for (std::uint64_t i = 0; edges.size() < wanted; ++i) {
    const Edge edge = draw(i);
    if (edge.source != edge.destination) edges.emplace(edge.source, edge.destination);
  }
  return edges;
}

TEST_CASE("distinct_edges: the first different ones, whatever the memory") {
  const DrawEdge draw = edge_draws(options_of(GraphKind::kRmat, 3000, 1));
  for (const std::int64_t wanted : {1, 500, 60'000}) {
    const auto expected = first_edges(draw, static_cast<std::size_t>(wanted));
    for (const std::int64_t memory :
         {std::int64_t{0}, std::int64_t{1} << 20, std::int64_t{1} << 30}) {
      MemoryFileSystem files;
      files.create_directories("s");
      {
        DistinctEdges edges(files, "s/drawn", draw, wanted, 1'000'000, memory, Control{});
        REQUIRE(edges.complete());
        CHECK(edges.known_edges() == wanted);
        for (int round = 0; round < 2; ++round) {
          EdgeBlock block;
          std::vector<std::pair<VertexId, VertexId>> found;
          for (std::uint64_t number = 0; edges.next(1000, block); ++number) {
            CHECK(block.number == number);
            CHECK(block.edges.size() <= 1000);
            for (const Edge& edge : block.edges) found.emplace_back(edge.source, edge.destination);
          }
          CHECK(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
          edges.rewind();
        }
      }
      CHECK(files.list("s").empty());
    }
  }
}

TEST_CASE("distinct_edges: where there are not so many, it ends") {
  MemoryFileSystem files;
  const DrawEdge draw = [](std::uint64_t index) {
    return Edge{0, static_cast<VertexId>(1 + index % 50)};
  };
  const DistinctEdges edges(files, "drawn", draw, 51, 5000, 1 << 20, Control{});
  CHECK(!edges.complete());
  CHECK(edges.known_edges() == 50);
}

TEST_CASE("generate: the same bytes whatever the memory, and too little is refused") {
  const auto generate = [](MemoryFileSystem& files, std::int64_t memory) {
    auto options = options_of(GraphKind::kRmat, 20'000, 150'000);
    options.memory_bytes = memory;
    return generate_dataset(files, options, "g.ooc", Control{});
  };
  MemoryFileSystem little, much, none;
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 2);
  CHECK(generate(little, std::int64_t{180} << 20).stored_edges == 300'000);
  CHECK(generate(much, std::int64_t{8} << 30).input.edges == 300'000);
  for (const std::string& name : much.list("g.ooc")) {
    CHECK(read_file(little, "g.ooc/" + name) == read_file(much, "g.ooc/" + name));
  }
  CHECK_THAT(error_of<BudgetError>([&] { generate(none, std::int64_t{100} << 20); }),
             Contains("--memory 100 MiB; give --memory"));
  CHECK(none.list(".").empty());
}

TEST_CASE("generate: 80 % of the edges stay inside classes; rmat is skewed") {
  const auto sbm = generate_graph(options_of(GraphKind::kSbm, 10'000, 60'000));
  CHECK(inside_share(sbm) == Approx(0.8).margin(0.02));
  const auto rmat = generate_graph(options_of(GraphKind::kRmat, 10'000, 60'000));
  CHECK(inside_share(rmat) == Approx(0.8).margin(0.05));
  const auto largest_degree = [](const GeneratedGraph& graph) {
    std::vector<std::int64_t> degrees(10'000, 0);
    for (const Edge& edge : graph.edges) ++degrees[edge.destination];
    return *std::max_element(degrees.begin(), degrees.end());
  };
  CHECK(largest_degree(sbm) < 5 * 12);
  CHECK(largest_degree(rmat) > 20 * 12);
  // Neither classes nor degrees lie in the order of ids.
  for (const auto* graph : {&sbm, &rmat}) {
    std::int64_t first_half = 0, same_as_next = 0;
    for (const Edge& edge : graph->edges) first_half += edge.source < 5000;
    for (std::size_t v = 0; v + 1 < 10'000; ++v) {
      same_as_next += graph->labels[v] == graph->labels[v + 1];
    }
    CHECK(static_cast<double>(first_half) / 120'000 == Approx(0.5).margin(0.05));
    CHECK(same_as_next < 1500);
  }
}

// Rows averaged over each vertex and its neighbours.
std::vector<float> average_over_neighbours(const GeneratedGraph& graph, std::int64_t cols,
                                           const std::vector<float>& rows) {
  std::vector<float> sums = rows;
  std::vector<float> counts(graph.labels.size(), 1.0f);
  for (const Edge& edge : graph.edges) {
    ++counts[edge.destination];
    for (std::int64_t col = 0; col < cols; ++col) {
      sums[edge.destination * cols + col] += rows[edge.source * cols + col];
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] /= counts[i / static_cast<std::size_t>(cols)];
  return sums;
}

// Each test vertex goes to the class whose train vertices' mean is nearest.
double nearest_mean_accuracy(const GeneratedGraph& graph, const std::vector<std::uint8_t>& splits,
                             std::int64_t cols, const std::vector<float>& rows) {
  std::vector<double> means(static_cast<std::size_t>(10 * cols), 0.0);
  std::vector<double> counts(10, 0.0);
  for (std::size_t v = 0; v < splits.size(); ++v) {
    if (splits[v] != 1) continue;
    ++counts[graph.labels[v]];
    for (std::int64_t col = 0; col < cols; ++col) {
      means[graph.labels[v] * cols + col] += rows[v * cols + col];
    }
  }
  std::int64_t right = 0, tested = 0;
  for (std::size_t v = 0; v < splits.size(); ++v) {
    if (splits[v] != 3) continue;
    std::int32_t best = 0;
    double best_distance = INFINITY;
    for (std::int32_t label = 0; label < 10; ++label) {
      double distance = 0;
      for (std::int64_t col = 0; col < cols; ++col) {
        distance += std::pow(rows[v * cols + col] - means[label * cols + col] / counts[label], 2);
      }
      if (distance < best_distance) best_distance = distance, best = label;
    }
    right += best == graph.labels[v];
    ++tested;
  }
  return static_cast<double>(right) / static_cast<double>(tested);
}

TEST_CASE("generate: features say little alone, and much averaged over two hops") {
  MemoryFileSystem files;
  const auto options = options_of(GraphKind::kSbm, 4000, 16'000);
  const Findings findings = generate_dataset(files, options, "g.ooc", Control{});
  CHECK(findings.stored_edges == 32'000);
  CHECK(findings.split_counts == std::array<std::int64_t, 3>{2400, 800, 800});
  const Dataset dataset = Dataset::open(files, "g.ooc", VerifyPolicy::kFirst);
  dataset.verify();
  CHECK(dataset.manifest().symmetric);
  const auto graph = read_graph(files);
  std::vector<float> rows(4000 * 64);
  dataset.tensor("features")->read_rows(0, 4000, rows.data());
  std::vector<std::uint8_t> splits(4000);
  dataset.tensor("splits")->read_rows(0, 4000, splits.data());
  double square = 0;
  for (const float value : rows) square += value * value;
  CHECK(square / (4000 * 64) == Approx(1.0 + 1.0 / 64).margin(0.02));
  const auto once = average_over_neighbours(graph, 64, rows);
  const auto twice = average_over_neighbours(graph, 64, once);
  CHECK(nearest_mean_accuracy(graph, splits, 64, rows) < 0.45);
  CHECK(nearest_mean_accuracy(graph, splits, 64, twice) > 0.85);
}

TEST_CASE("generate: counts that are not possible are refused, and nothing is left") {
  MemoryFileSystem files;
  const auto message = [&](auto change) {
    auto options = options_of(GraphKind::kSbm, 100, 300);
    change(options);
    return error_of<UsageError>([&] { generate_dataset(files, options, "g.ooc", Control{}); });
  };
  CHECK_THAT(message([](auto& o) { o.vertices = 1; }), Contains("--vertices 1"));
  CHECK_THAT(message([](auto& o) { o.features = 0; }), Contains("--features 0"));
  CHECK_THAT(message([](auto& o) { o.classes = 0; }), Contains("--classes 0"));
  CHECK_THAT(message([](auto& o) { o.classes = 101; }), Contains("--classes 101"));
  CHECK_THAT(message([](auto& o) { o.features = (1 << 20) + 1; }),
             Contains("--features 1048577 is not possible") && Contains("give 1 to 1048576"));
  CHECK_THAT(message([](auto& o) { o.vertices = o.classes = 65537; }), Contains("--classes 65537"));
  CHECK_THAT(message([](auto& o) { o.edges = 5000; }), Contains("--edges 5000"));
  CHECK_THAT(message([](auto& o) { o.edges = 0; }), Contains("--edges 0"));
  CHECK_THAT(message([](auto& o) { o.block_rows = 3; }), Contains("--block-rows 3"));
  // 80 % of 300 edges would have to lie within classes of two vertices each.
  CHECK_THAT(message([](auto& o) { o.classes = 50; }), Contains("--edges 300"));
  CHECK(files.list(".").empty());
}

}  // namespace
}  // namespace ooc
