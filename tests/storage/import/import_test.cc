#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"
#include "storage/import/importer.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"
#include "tests/support/random_graph.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::error_of;
using test::MemoryFileSystem;
using test::npy;
using test::put_file;

constexpr std::int64_t kVertices = 150;
constexpr std::int64_t kCols = 37;
constexpr const char* kOutput = "out/g.ooc";

// The inputs of a small graph in the directory "in", and what they hold.
struct Inputs {
  std::vector<Edge> edges = test::random_edges(kVertices, 600, 11);
  std::vector<float> features;
  std::vector<std::int64_t> labels;
  std::vector<std::int64_t> train, valid, test;

  Inputs() {
    for (std::int64_t i = 0; i < kVertices * kCols; ++i) {
      features.push_back(static_cast<float>((i * i) % 101) - 50.0f);
    }
    for (std::int64_t v = 0; v < kVertices; ++v) {
      labels.push_back(v % 9 == 8 ? -1 : v % 4);
      if (labels.back() >= 0) (v % 3 == 0 ? train : v % 3 == 1 ? valid : test).push_back(v);
    }
  }

  ImportOptions put(FileSystem& files) const {
    files.create_directories("in");
    files.create_directories("out");
    std::vector<std::int64_t> ends;
    for (const Edge& edge : edges) ends.insert(ends.end(), {edge.source, edge.destination});
    const auto count = [](const auto& v) { return static_cast<std::int64_t>(v.size()); };
    put_file(files, "in/edges.npy", npy<std::int64_t>({count(edges), 2}, ends));
    put_file(files, "in/features.npy", npy<float>({kVertices, kCols}, features));
    put_file(files, "in/labels.npy", npy<std::int64_t>({kVertices}, labels));
    put_file(files, "in/train_idx.npy", npy<std::int64_t>({count(train)}, train));
    put_file(files, "in/valid_idx.npy", npy<std::int64_t>({count(valid)}, valid));
    put_file(files, "in/test_idx.npy", npy<std::int64_t>({count(test)}, test));
    ImportOptions options;
    options.inputs = discover_inputs(files, "in", {});
    options.block_rows = 16;
    return options;
  }
};

template <class T>
std::vector<T> read_tensor(const Dataset& dataset, const char* name) {
  const VertexTensorFile* const file = dataset.tensor(name);
  REQUIRE(file != nullptr);
  std::vector<T> rows(static_cast<std::size_t>(file->layout().rows * file->layout().cols));
  file->read_rows(0, file->layout().rows, rows.data());
  return rows;
}

// The edges in the ids of the input.
std::multiset<std::pair<VertexId, VertexId>> original_edges(const Dataset& dataset) {
  const auto ids = read_tensor<std::int64_t>(dataset, "ids");
  const EdgeFile& file = dataset.edge_file(Direction::kIn);
  const EdgeLayout& layout = file.layout();
  std::multiset<std::pair<VertexId, VertexId>> edges;
  for (std::int64_t span = 0; span < layout.span_count(); ++span) {
    for (std::int64_t panel = 0; panel < layout.panel_count(); ++panel) {
      for (const PanelTile& entry : file.tiles(span, panel)) {
        for_each_edge(entry.tile, [&](std::uint16_t row, std::uint16_t source) {
          edges.emplace(ids[span * layout.span_rows + source],
                        ids[entry.block * layout.block_rows + row]);
        });
      }
    }
  }
  return edges;
}

std::multiset<std::pair<VertexId, VertexId>> pairs_of(const std::vector<Edge>& edges) {
  std::multiset<std::pair<VertexId, VertexId>> pairs;
  for (const Edge& edge : edges) pairs.emplace(edge.source, edge.destination);
  return pairs;
}

TEST_CASE("import: whatever the order, each vertex keeps its edges, features, label and split") {
  const Inputs inputs;
  for (const VertexOrder order : {VertexOrder::kNatural, VertexOrder::kRandom, VertexOrder::kDegree,
                                  VertexOrder::kBalanced, VertexOrder::kMetis}) {
    MemoryFileSystem files;
    ImportOptions options = inputs.put(files);
    options.order = order;
    const Findings findings = import_dataset(files, options, kOutput, Control{});
    CHECK(findings.vertices == kVertices);
    CHECK(findings.vertices_from == "the rows of in/features.npy");
    CHECK(findings.stored_edges == 600);
    CHECK(findings.classes == 4);
    CHECK(findings.unlabelled == 16);
    CHECK(findings.warnings.empty());

    const Dataset dataset = Dataset::open(files, kOutput, VerifyPolicy::kFirst);
    dataset.verify();
    CHECK(files.list("out") == std::vector<std::string>{"g.ooc"});
    CHECK(files.list(kOutput).size() == dataset.manifest().files.size() + 1);
    CHECK(dataset.manifest().order == kVertexOrderNames[static_cast<std::size_t>(order)]);
    CHECK(nlohmann::json::parse(dataset.manifest().findings).at("unlabelled") == 16);
    CHECK(original_edges(dataset) == pairs_of(inputs.edges));
    const auto ids = read_tensor<std::int64_t>(dataset, "ids");
    const auto features = read_tensor<float>(dataset, "features");
    const auto labels = read_tensor<std::int32_t>(dataset, "labels");
    const auto splits = read_tensor<std::uint8_t>(dataset, "splits");
    CHECK(std::is_sorted(ids.begin(), ids.end()) == (order == VertexOrder::kNatural));
    for (std::int64_t row = 0; row < kVertices; ++row) {
      const std::int64_t id = ids[row];
      REQUIRE(std::equal(features.begin() + row * kCols, features.begin() + (row + 1) * kCols,
                         inputs.features.begin() + id * kCols));
      REQUIRE(labels[row] == inputs.labels[id]);
      REQUIRE(splits[row] == (labels[row] < 0 ? 0 : id % 3 + 1));
    }
  }
}

TEST_CASE("import: the transforms of edges and features reach the dataset") {
  const Inputs inputs;
  MemoryFileSystem files;
  ImportOptions options = inputs.put(files);
  options.edges = {true, SelfLoops::kAddRemaining, Coalesce::kFirst};
  options.feature_norm = FeatureNorm::kRow;
  options.order = VertexOrder::kBalanced;
  const Findings findings = import_dataset(files, options, kOutput, Control{});
  const Dataset dataset = Dataset::open(files, kOutput, VerifyPolicy::kFirst);
  CHECK(dataset.manifest().symmetric);
  CHECK(dataset.manifest().transforms ==
        R"({"undirected":true,"self_loops":"add-remaining","coalesce":"first",)"
        R"("feature_norm":"row"})");
  std::set<std::pair<VertexId, VertexId>> expected;
  for (const Edge& edge : inputs.edges) {
    expected.emplace(edge.source, edge.destination);
    expected.emplace(edge.destination, edge.source);
  }
  for (VertexId v = 0; v < kVertices; ++v) expected.emplace(v, v);
  const auto stored = original_edges(dataset);
  CHECK(stored.size() == expected.size());
  CHECK(std::equal(stored.begin(), stored.end(), expected.begin(), expected.end()));
  CHECK(findings.stored_edges == static_cast<std::int64_t>(expected.size()));
  CHECK(findings.stored_without_in_edges == 0);
  CHECK(findings.input_without_in_edges > 0);
  const auto features = read_tensor<float>(dataset, "features");
  for (std::int64_t row = 0; row < kVertices; ++row) {
    double sum = 0;
    for (std::int64_t col = 0; col < kCols; ++col) sum += std::fabs(features[row * kCols + col]);
    REQUIRE(sum == Approx(1.0));
  }
}

TEST_CASE("import: edges alone make a graph; the count comes from where it can") {
  MemoryFileSystem files;
  put_file(files, "e.csv", "0 1\n4 2\n");
  ImportOptions options;
  options.inputs.edges = "e.csv";
  Findings findings = import_dataset(files, options, "a.ooc", Control{});
  CHECK(findings.vertices == 5);
  CHECK(findings.vertices_from == "the largest id in e.csv");
  CHECK(findings.unlabelled == 5);
  REQUIRE(findings.warnings.size() == 2);
  CHECK_THAT(findings.warnings[0], Contains("1 of the 5 vertices are in no edge"));
  CHECK_THAT(findings.warnings[1], Contains("--undirected"));
  const Dataset dataset = Dataset::open(files, "a.ooc", VerifyPolicy::kFirst);
  CHECK(dataset.tensor("features") == nullptr);
  CHECK(dataset.tensor("labels") == nullptr);
  CHECK_FALSE(dataset.has_splits());

  options.vertices = 9;
  findings = import_dataset(files, options, "b.ooc", Control{});
  CHECK(findings.vertices == 9);
  CHECK(findings.vertices_from == "--vertices");
  put_file(files, "y.npy", npy<std::int8_t>({7}, {0, 1, 2, 0, 1, 2, -1}));
  options.vertices.reset();
  options.inputs.labels = "y.npy";
  CHECK(import_dataset(files, options, "c.ooc", Control{}).vertices == 7);

  put_file(files, "gap.csv", "0\n4\n-1\n0\n4\n0\n0\n");
  options.inputs.labels = "gap.csv";
  findings = import_dataset(files, options, "gap.ooc", Control{});
  CHECK_THAT(findings.warnings[0], Contains("3 of the 5 classes have no vertex"));
  options.inputs.labels = "y.npy";

  put_file(files, "none.npy", npy<std::int32_t>({0, 2}, {}));
  options.inputs.edges = "none.npy";
  findings = import_dataset(files, options, "d.ooc", Control{});
  CHECK(findings.stored_edges == 0);
  CHECK_THAT(findings.warnings.back(), Contains("no edges"));
  Dataset::open(files, "d.ooc", VerifyPolicy::kFirst).verify();
}

// Imports after `change` and expects an E; nothing may be left.
template <class E>
std::string import_error(const std::function<void(FileSystem&, ImportOptions&)>& change) {
  MemoryFileSystem files;
  ImportOptions options = Inputs().put(files);
  change(files, options);
  const std::string message =
      error_of<E>([&] { import_dataset(files, options, kOutput, Control{}); });
  CHECK(files.list("out").empty());
  return message;
}

TEST_CASE("import: inputs that disagree are refused, and nothing is left") {
  CHECK_THAT(import_error<DataError>([](FileSystem& files, ImportOptions&) {
               put_file(files, "in/labels.npy", npy<std::int64_t>({3}, {0, 1, 2}));
             }),
             Contains("3 rows but the vertex count is 150 (the rows of in/features.npy), "
                      "in/labels.npy;"));
  CHECK_THAT(
      import_error<DataError>([](FileSystem&, ImportOptions& options) { options.vertices = 151; }),
      Contains("150 rows but the vertex count is 151 (--vertices), in/features.npy;"));
  CHECK_THAT(import_error<DataError>([](FileSystem& files, ImportOptions&) {
               put_file(files, "in/edges.npy", npy<std::int64_t>({2, 2}, {0, 1, 150, 2}));
             }),
             Contains("vertex id 150 is not below the vertex count 150 (the rows of "
                      "in/features.npy), in/edges.npy, row 1"));
  CHECK_THAT(import_error<DataError>([](FileSystem& files, ImportOptions&) {
               std::vector<float> features(kVertices * kCols, 1.0f);
               features.back() = INFINITY;
               put_file(files, "in/features.npy", npy<float>({kVertices, kCols}, features));
             }),
             Contains("inf in the features, in/features.npy, row 149, column 36"));
  CHECK_THAT(import_error<DataError>([](FileSystem& files, ImportOptions&) {
               put_file(files, "in/test_idx.npy", npy<std::int64_t>({0}, {}));
             }),
             Contains("the test split is empty"));
  CHECK_THAT(import_error<DataError>(
                 [](FileSystem&, ImportOptions& options) { options.inputs.edges.clear(); }),
             Contains("no edges"));
  CHECK_THAT(import_error<DataError>(
                 [](FileSystem&, ImportOptions& options) { options.inputs.edges = "in/no.npy"; }),
             Contains("in/no.npy"));
  CHECK_THAT(
      import_error<UsageError>([](FileSystem&, ImportOptions& options) { options.vertices = 0; }),
      Contains("--vertices 0"));
  CHECK_THAT(import_error<UsageError>(
                 [](FileSystem&, ImportOptions& options) { options.block_rows = 100'000; }),
             Contains("--block-rows 100000"));
}

TEST_CASE("import: an output that exists is kept, or replaced with --force") {
  MemoryFileSystem files;
  ImportOptions options = Inputs().put(files);
  import_dataset(files, options, kOutput, Control{});
  CHECK_THROWS_AS(import_dataset(files, options, kOutput, Control{}), UsageError);
  options.force = true;
  options.edges.self_loops = SelfLoops::kDrop;
  const Findings findings = import_dataset(files, options, kOutput, Control{});
  CHECK(Dataset::open(files, kOutput, VerifyPolicy::kFirst).edges() == findings.stored_edges);
  CHECK(findings.stored_edges < 600);
  put_file(files, "in/labels.npy", npy<std::int64_t>({1}, {0}));
  CHECK_THROWS_AS(import_dataset(files, options, kOutput, Control{}), DataError);
  CHECK(Dataset::open(files, kOutput, VerifyPolicy::kFirst).edges() == findings.stored_edges);
  CHECK(files.list("out") == std::vector<std::string>{"g.ooc"});
}

TEST_CASE("import: interrupted or out of space at any step, it leaves nothing") {
  MemoryFileSystem base;
  ImportOptions options = Inputs().put(base);
  options.order = VertexOrder::kRandom;
  std::int64_t steps = 0;
  for (std::int64_t last = 1;; ++last) {
    std::atomic<bool> stop{false};
    steps = 0;
    const Control control{[&](std::string_view, double, double) { stop = ++steps == last; }, &stop};
    if (error_of<Interrupted>([&] { import_dataset(base, options, kOutput, control); }) ==
        "no error") {
      break;
    }
    REQUIRE(base.list("out").empty());
  }
  CHECK(steps >= 5);
  base.remove_all(kOutput);
  std::int64_t failures = 0;
  for (std::int64_t write = 1;; ++write, ++failures) {
    test::FaultyFileSystem files(base);
    files.faults.first_failing_write = write;
    if (error_of<IoError>([&] { import_dataset(files, options, kOutput, Control{}); }) ==
        "no error") {
      break;
    }
    REQUIRE(base.list("out").empty());
  }
  CHECK(failures > 10);
}

TEST_CASE("import: the findings as facts") {
  Findings findings;
  findings.vertices = 4;
  findings.vertices_from = "--vertices";
  findings.input = {10, 1, 2, 7, 4};
  findings.warnings = {"careful"};
  CHECK(findings_to_json(findings).dump() ==
        R"({"vertices":4,"vertices_from":"--vertices","input":{"edges":10,)"
        R"("reciprocal_share":0.5714285714285714,"self_loops":1,"duplicates":2,)"
        R"("vertices_without_in_edges":0},"stored":{"edges":0,"vertices_without_in_edges":0},)"
        R"("features":0,"classes":0,"unlabelled":0,"splits":{"train":0,"valid":0,"test":0},)"
        R"("warnings":["careful"]})");
}

TEST_CASE("import: features without columns are refused before the edges are read") {
  MemoryFileSystem files;
  const ImportOptions options = Inputs().put(files);
  put_file(files, "in/features.npy", npy<float>({kVertices, 0}, {}));
  put_file(files, "in/edges.npy", npy<float>({1, 2}, {0.5f, 0.5f}));
  CHECK_THAT(error_of<DataError>([&] { import_dataset(files, options, kOutput, Control{}); }),
             Contains("the features have no columns, in/features.npy"));
}

TEST_CASE("import: a path in another encoding than UTF-8 does not matter") {
  MemoryFileSystem files;
  ImportOptions options = Inputs().put(files);
  files.rename("in/features.npy",
               "in/Gr\xf6\xdf"
               "e.npy");
  options.inputs.features =
      "in/Gr\xf6\xdf"
      "e.npy";
  import_dataset(files, options, kOutput, Control{});
  CHECK_NOTHROW(Dataset::open(files, kOutput, VerifyPolicy::kFirst).verify());
}

}  // namespace
}  // namespace ooc
