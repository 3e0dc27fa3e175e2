#include <catch2/catch.hpp>
#include <cstring>

#include "storage/base/errors.h"
#include "storage/import/edges/edge_source.h"
#include "storage/import/formats/inputs.h"
#include "storage/import/values/labels_input.h"
#include "tests/support/edge_files.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::error_of;
using test::MemoryFileSystem;
using test::npy;
using test::npy_file;
using test::put_file;

std::vector<Edge> edges_of(const std::string& name, const std::string& bytes,
                           std::optional<std::int64_t> vertices = std::nullopt) {
  MemoryFileSystem files;
  put_file(files, name, bytes);
  return test::read_edges(open_table(files, name), vertices);
}

std::string edges_error(const std::string& name, const std::string& bytes,
                        std::optional<std::int64_t> vertices = std::nullopt) {
  return error_of<DataError>([&] { edges_of(name, bytes, vertices); });
}

TEST_CASE("edges: [E, 2], [2, E], text; [2, 2] is read as rows") {
  const std::vector<Edge> expected = {{0, 1}, {2, 3}, {4, 5}};
  CHECK(edges_of("e.npy", npy<std::int32_t>({3, 2}, {0, 1, 2, 3, 4, 5})) == expected);
  CHECK(edges_of("e.npy", npy<std::int64_t>({2, 3}, {0, 2, 4, 1, 3, 5})) == expected);
  CHECK(edges_of("e.npy", npy<std::int64_t>({2, 3}, {0, 1, 2, 3, 4, 5}, true)) == expected);
  CHECK(edges_of("e.npy", npy<double>({3, 2}, {0, 1, 2, 3, 4, 5})) == expected);
  CHECK(edges_of("e.csv", "src,dst\n0,1\n2,3\n4,5\n") == expected);
  CHECK(edges_of("e.npy", npy<std::int64_t>({2, 2}, {0, 1, 2, 3})) ==
        std::vector<Edge>{{0, 1}, {2, 3}});
  CHECK(edges_of("e.npy", npy<std::int64_t>({0, 2}, {})).empty());
  CHECK(edges_of("e.npy", npy<std::int64_t>({2, 0}, {})).empty());
  CHECK(edges_of("e.csv", "").empty());
}

TEST_CASE("edges: the wrong number of columns is refused") {
  CHECK_THAT(edges_error("e.npy", npy<std::int32_t>({2, 3, 1}, {0, 1, 2, 3, 4, 5})),
             Contains("3 dimensions"));
  CHECK_THAT(edges_error("e.npy", npy<std::int32_t>({3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8})),
             Contains("two columns, source and destination, not 3, e.npy, shape (3, 3)"));
  CHECK_THAT(edges_error("e.npy", npy<std::int32_t>({4}, {0, 1, 2, 3})), Contains("not 1"));
  CHECK_THAT(edges_error("e.npy", npy<std::int32_t>({4, 1}, {0, 1, 2, 3})),
             Contains("save them as [E, 2] or [2, E]"));
  CHECK_THAT(edges_error("e.csv", "0,1,0.5\n1,2,0.5\n"),
             Contains("not 3, e.csv, line 1: 0,1,0.5; choose two, e.csv:1,2"));
  CHECK_THAT(edges_error("e.txt", "0\n1\n"), Contains("not 1, e.txt") && !Contains("[2, E]"));
}

TEST_CASE("edges: a bad id is named with its row or line and the vertex count") {
  CHECK_THAT(edges_error("e.npy", npy<std::int32_t>({3, 2}, {0, 1, 2, -3, 4, 5})),
             Contains("vertex id -3 is negative, e.npy, row 1;"));
  CHECK_THAT(edges_error("e.npy", npy<std::int32_t>({3, 2}, {0, 1, 2, 3, 4, 5}), 5),
             Contains("vertex id 5 is not below the vertex count 5, e.npy, row 2;"));
  CHECK_THAT(edges_error("e.npy", npy<std::int32_t>({2, 3}, {0, 2, 4, 1, 3, 5}), 5),
             Contains("vertex id 5 is not below the vertex count 5, e.npy, column 2;"));
  CHECK_THAT(edges_error("e.csv", "source,target\n# c\n0,1\n7,1\n", 5),
             Contains("vertex id 7 is not below the vertex count 5, e.csv, line 4;"));
  std::vector<std::int32_t> many(200'000, 1);
  many[150'001] = -1;
  CHECK_THAT(edges_error("e.npy", npy<std::int32_t>({100'000, 2}, many)),
             Contains("e.npy, row 75000;"));
  CHECK_THAT(edges_error("e.npy", npy<float>({1, 2}, {0, 0.5f})), Contains("not an integer"));
}

TEST_CASE("edges: the vertex count follows the largest id, unless that is not credible") {
  CHECK(vertices_of_largest_id(9, 2, "e.npy") == 10);
  CHECK(vertices_of_largest_id(-1, 0, "e.npy") == 0);
  CHECK_THAT(error_of<DataError>([] { vertices_of_largest_id(1LL << 40, 1, "e.npy"); }),
             Contains("1099511627776 does not fit 1 edges, e.npy") && Contains("--vertices"));
}

// The tables of a graph with three edges that carry everything.
EdgeDataTables loaded_tables(FileSystem& files) {
  put_file(files, "e.npy", npy<std::int32_t>({3, 2}, {0, 1, 2, 3, 4, 5}));
  put_file(files, "w.npy", npy<double>({3}, {0.5, -1, 2}));
  put_file(files, "t.csv", "type\n7\n0\n65535\n");
  put_file(files, "f.npy", npy<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  EdgeDataTables tables;
  tables.weights = open_table(files, "w.npy");
  tables.types = open_table(files, "t.csv");
  tables.features = open_table(files, "f.npy");
  return tables;
}

TEST_CASE("edges: weights, types and features follow their edges, directly and spooled") {
  MemoryFileSystem files;
  EdgeDataTables tables = loaded_tables(files);
  TableEdgeSource source(open_table(files, "e.npy"), std::move(tables), std::nullopt);
  CHECK(source.data() == EdgeData{true, true, 2});
  EdgeBlock direct, spooled;
  REQUIRE(source.next(10, direct));
  CHECK_FALSE(source.next(10, spooled));
  CHECK(source.largest_id() == 5);
  CHECK(source.largest_type() == 65535);
  source.rewind();
  SpooledEdgeSource spool(files, "spool", source, source.data().bytes(), Control{});
  CHECK(spool.known_edges() == 3);
  for (int round = 0; round < 2; ++round) {
    REQUIRE(spool.next(10, spooled));
    CHECK(spooled.edges == direct.edges);
    CHECK(spooled.data == direct.data);
    CHECK_FALSE(spool.next(10, spooled));
    spool.rewind();
  }
  const std::byte* const second = direct.data.data() + source.data().bytes();
  float weight = 0, features[2] = {};
  std::uint16_t type = 1;
  std::memcpy(&weight, second, sizeof(weight));
  std::memcpy(&type, second + source.data().type_offset(), sizeof(type));
  std::memcpy(features, second + source.data().feature_offset(), sizeof(features));
  CHECK(weight == -1);
  CHECK(type == 0);
  CHECK((features[0] == 3 && features[1] == 4));
}

TEST_CASE("edges: what edges carry is checked against them") {
  MemoryFileSystem files;
  const auto error = [&](const char* role, const std::string& name, const std::string& bytes) {
    EdgeDataTables tables = loaded_tables(files);
    put_file(files, name, bytes);
    (role[0] == 'w'   ? tables.weights
     : role[0] == 't' ? tables.types
                      : tables.features) = open_table(files, name);
    return error_of<DataError>([&] {
      TableEdgeSource source(open_table(files, "e.npy"), std::move(tables), 6);
      EdgeBlock block;
      while (source.next(2, block)) {
      }
    });
  };
  CHECK_THAT(error("w", "a.npy", npy<float>({2}, {1, 2})),
             Contains("2 rows but 3 edges, a.npy; give one row"));
  CHECK_THAT(error("w", "a.csv", "1\n2\n"), Contains("2 rows but 3 edges, a.csv"));
  CHECK_THAT(error("w", "a.csv", "1\n2\n3\n4\n"), Contains("4 rows but 3 edges, a.csv"));
  CHECK_THAT(error("w", "a.csv", "1\n2\ninf\n"), Contains("inf is not finite, a.csv, line 3"));
  CHECK_THAT(error("t", "a.npy", npy<std::int32_t>({3}, {0, 1, 65536})),
             Contains("edge type 65536 is out of range, a.npy, row 2"));
  CHECK_THAT(error("t", "a.npy", npy<std::int32_t>({3}, {0, -1, 3})),
             Contains("edge type -1 is out of range"));
}

std::string labels_error(const std::string& name, const std::string& bytes) {
  MemoryFileSystem files;
  put_file(files, name, bytes);
  return error_of<DataError>([&] { read_labels(*open_table(files, name), Control{}); });
}

TEST_CASE("labels: vectors, one-column matrices, integral floats, text") {
  MemoryFileSystem files;
  const std::vector<std::int32_t> expected = {0, -1, 4};
  put_file(files, "a.npy", npy<std::int64_t>({3}, {0, -1, 4}));
  put_file(files, "b.npy", npy<std::int8_t>({3, 1}, {0, -1, 4}));
  put_file(files, "c.npy", npy<float>({3}, {0, -1, 4}));
  put_file(files, "d.csv", "label\n0\n-1\n4\n");
  for (const char* name : {"a.npy", "b.npy", "c.npy", "d.csv"}) {
    CHECK(read_labels(*open_table(files, name), Control{}) == expected);
  }
}

TEST_CASE("labels: values and shapes that are none are refused") {
  CHECK_THAT(labels_error("y.npy", npy<std::int64_t>({3}, {0, -2, 1})),
             Contains("label -2 is not a class index, y.npy, row 1;"));
  CHECK_THAT(labels_error("y.csv", "0\n3000000000\n"),
             Contains("label 3000000000 is not a class index, y.csv, line 2;"));
  CHECK_THAT(labels_error("y.npy", npy<float>({3}, {0, 0.5f, 1})),
             Contains("0.5 is not an integer, y.npy, row 1;"));
  CHECK_THAT(
      labels_error("y.npy", npy<float>({2, 3}, {0, 1, 1, 0, 0, 1})),
      Contains("one class a vertex takes one column, not 3") && Contains("y.npy, shape (2, 3)"));
}

// Reads splits given as (file name, bytes); an empty name is no split.
std::vector<std::uint8_t> splits_of(const std::vector<std::pair<std::string, std::string>>& inputs,
                                    const std::vector<std::int32_t>& labels,
                                    std::int64_t vertices = 5) {
  MemoryFileSystem files;
  SplitTables tables;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].first.empty()) continue;
    put_file(files, inputs[i].first, inputs[i].second);
    tables[i] = open_table(files, inputs[i].first);
  }
  return read_splits(tables, vertices, labels, {}, Control{});
}

const std::vector<std::int32_t> kLabels = {0, 1, 0, -1, 1};

TEST_CASE("splits: id lists and masks give the same splits") {
  const std::vector<std::uint8_t> expected = {1, 2, 0, 0, 3};
  CHECK(splits_of({{"train_idx.npy", npy<std::int64_t>({1}, {0})},
                   {"valid_idx.csv", "1\n"},
                   {"test_idx.npy", npy<std::int32_t>({1, 1}, {4})}},
                  kLabels) == expected);
  CHECK(splits_of({{"a.npy", npy_file("|b1", {5}, std::string("\1\0\0\0\0", 5))},
                   {"val_mask.txt.gz", test::gzip("0\n1\n0\n0\n0\n")},
                   {"test_mask.npy", npy<float>({5}, {0, 0, 0, 0, 1})}},
                  kLabels) == expected);
  CHECK(
      splits_of({{"g.npz",
                  test::zip({{"train_mask.npy", npy<std::uint8_t>({5}, {1, 0, 0, 0, 0})}}, true)}},
                kLabels)[0] == 1);
  CHECK(splits_of({}, {}) == std::vector<std::uint8_t>(5, 0));
}

TEST_CASE("splits: what does not fit the graph is refused") {
  const auto message = [](const std::vector<std::pair<std::string, std::string>>& inputs,
                          const std::vector<std::int32_t>& labels = kLabels) {
    return error_of<DataError>([&] { splits_of(inputs, labels); });
  };
  CHECK_THAT(
      message({{"train_idx.npy", npy<std::int64_t>({2}, {0, 5})}}),
      Contains("vertex id 5 is not within the 5 vertices of the graph, train_idx.npy, row 1"));
  CHECK_THAT(message({{"train_idx.npy", npy<std::int64_t>({2}, {0, -1})}}), Contains("id -1"));
  CHECK_THAT(
      message(
          {{"train_idx.npy", npy<std::int64_t>({2}, {0, 1})}, {"valid_idx.csv", "# h\n4\n1\n"}}),
      Contains("vertex 1 is in the train split and in the valid split, valid_idx.csv, line 3"));
  CHECK_THAT(message({{"train_idx.npy", npy<std::int64_t>({2}, {1, 1})}}),
             Contains("vertex 1 is in the train split twice, train_idx.npy, row 1"));
  CHECK_THAT(message({{"train_idx.npy", npy<std::int64_t>({1}, {3})}}),
             Contains("vertex 3 in the train split has no label"));
  CHECK_THAT(message({{"train_idx.npy", npy<std::int64_t>({1}, {0})}}, {}),
             Contains("has no label") && Contains("give labels too"));
  CHECK_THAT(message({{"train_idx.npy", npy<std::int64_t>({0}, {})}}),
             Contains("the train split is empty, train_idx.npy"));
  CHECK_THAT(message({{"train_idx.csv", ""}}), Contains("the train split is empty"));
  CHECK_THAT(message({{"", ""}, {"val_mask.npy", npy<std::uint8_t>({5}, {0, 0, 0, 0, 0})}}),
             Contains("the valid split is empty"));
  CHECK_THAT(message({{"train_mask.npy", npy<std::uint8_t>({4}, {1, 0, 0, 0})}}),
             Contains("the mask has 4 rows but the graph 5 vertices"));
  CHECK_THAT(message({{"train_mask.npy", npy<std::uint8_t>({5}, {1, 0, 2, 0, 0})}}),
             Contains("2 in a mask, train_mask.npy, row 2"));
  CHECK_THAT(
      message({{"train_mask.npy", npy<std::uint8_t>({5, 2}, std::vector<std::uint8_t>(10))}}),
      Contains("one column, not 2"));
}

TEST_CASE("labels: a class beyond 65,535 that outnumbers the vertices is a typing error") {
  CHECK_THAT(labels_error("y.csv", "0\n2000000000\n1\n"),
             Contains("class 2000000000 is not credible among 3 labels, y.csv, line 2;"));
  CHECK_THAT(labels_error("y.npy", npy<std::int64_t>({2}, {0, 65536})), Contains("row 1;"));
  MemoryFileSystem files;
  put_file(files, "y.npy", npy<std::int64_t>({2}, {0, 65535}));
  CHECK(read_labels(*open_table(files, "y.npy"), Control{}).back() == 65535);
}

TEST_CASE("labels and splits: no columns are refused") {
  CHECK_THAT(labels_error("y.npy", npy<std::int64_t>({3, 0}, {})),
             Contains("the labels have no columns, y.npy, shape (3, 0);"));
  MemoryFileSystem files;
  put_file(files, "t.npy", npy<std::int64_t>({3, 0}, {}));
  SplitTables tables;
  tables[0] = open_table(files, "t.npy");
  const std::vector<std::int32_t> labels = {0, 0, 0};
  CHECK_THAT(error_of<DataError>([&] { read_splits(tables, 3, labels, {}, Control{}); }),
             Contains("a split needs one column, not 0, t.npy"));
}

TEST_CASE("inputs: a directory without edges is named") {
  MemoryFileSystem files;
  files.create_directories("d");
  CHECK_THAT(error_of<DataError>([&] { discover_inputs(files, "d", {}); }),
             Contains("there are no edges, d; put edges.npy there"));
}

TEST_CASE("inputs: a directory's files find their parts by name") {
  MemoryFileSystem files;
  files.create_directories("d");
  for (const char* name : {"edge_index.npy", "x.npz", "y.csv.gz", "train_mask.npy", "val_idx.txt",
                           "test_idx.npy", "edge_weights.npy", "edge_types.h5", "SOURCE.txt",
                           "features_a.npz", "graph_id.npy", "valid_edges.npy"}) {
    put_file(files, join_path("d", name), "");
  }
  const ImportInputs inputs = discover_inputs(files, "d", {});
  CHECK(inputs.edges == "d/edge_index.npy");
  CHECK(inputs.features == "d/x.npz");
  CHECK(inputs.labels == "d/y.csv.gz");
  CHECK(inputs.train == "d/train_mask.npy");
  CHECK(inputs.valid == "d/val_idx.txt");
  CHECK(inputs.test == "d/test_idx.npy");
  CHECK(inputs.edge_weights == "d/edge_weights.npy");
  CHECK(inputs.edge_types == "d/edge_types.h5");
  CHECK(inputs.edge_features.empty());
  ImportInputs named;
  named.edges = "other/e.csv";
  put_file(files, "d/edges.npy", "");
  CHECK(discover_inputs(files, "d", named).edges == "other/e.csv");
}

TEST_CASE("inputs: two files for one part, an unreadable kind, no directory") {
  MemoryFileSystem files;
  files.create_directories("d");
  put_file(files, "d/edges.npy", "");
  put_file(files, "d/edge_index.npy", "");
  CHECK_THAT(error_of<DataError>([&] { discover_inputs(files, "d", {}); }),
             Contains("both edge_index.npy and edges.npy could be meant, d"));
  files.create_directories("e");
  put_file(files, "e/edges.pt", "");
  CHECK_THAT(error_of<DataError>([&] { discover_inputs(files, "e", {}); }),
             Contains("this kind of file is not supported, e/edges.pt"));
  put_file(files, "e/edges.npy", "");
  CHECK(discover_inputs(files, "e", {}).edges == "e/edges.npy");
  CHECK_THAT(error_of<DataError>([&] { discover_inputs(files, "missing", {}); }),
             Contains("no such directory, missing"));
}

}  // namespace
}  // namespace ooc
