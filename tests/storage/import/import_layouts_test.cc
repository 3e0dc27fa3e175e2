// Headerless files, and the directories that OGB and IGB hand out.
#include <catch2/catch.hpp>

#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"
#include "storage/import/formats/ogb.h"
#include "storage/import/formats/raw.h"
#include "storage/import/importer.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::error_of;
using test::gzip;
using test::MemoryFileSystem;
using test::npy;
using test::put_file;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST_CASE("raw: a headerless file is what stands beside its name") {
  MemoryFileSystem files;
  put_file(files, "a.bin", bytes_of<float>({1, 2, 3, 4, 5, 6}));
  const auto table = open_table(files, "a.bin:float32x3");
  CHECK(table->name() == "a.bin");
  CHECK(table->rows() == 2);
  CHECK(test::read_all<float>(*table) == std::vector<float>{1, 2, 3, 4, 5, 6});
  put_file(files, "edges", bytes_of<std::int32_t>({0, 1, 2, -3}));
  CHECK(test::read_all<std::int64_t>(*open_table(files, "edges:int32x2")) ==
        std::vector<std::int64_t>{0, 1, 2, -3});
  CHECK(open_table(files, "edges:int64")->rows() == 2);
  CHECK(open_table(files, "a.bin:bool")->kind() == ElementKind::kBool);

  CHECK_THAT(error_of<DataError>([&] { open_table(files, "a.bin:float32x5"); }),
             Contains("24 bytes are no whole number of rows of 20 bytes (5 columns), a.bin;"));
  CHECK_THAT(error_of<DataError>([&] { open_table(files, "a.bin"); }),
             Contains("does not say what it holds, a.bin; say it: a.bin:float32x128"));
  for (const char* wrong : {"float31", "int64x0", "int64x", "x3", "int64x-1", "int64x3x3", ""}) {
    CHECK_FALSE(parse_raw_format(wrong));
  }
}

TEST_CASE("raw: a file that starts as a .npy is one, whatever stands beside its name") {
  MemoryFileSystem files;
  put_file(files, "a.npy", npy<double>({2, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(test::read_all<float>(*open_table(files, "a.npy:float32x3")) ==
        std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK_THAT(error_of<DataError>([&] { open_table(files, "a.npy:float32x4"); }),
             Contains("a .npy of 3 columns where 4 are said, a.npy"));
}

TEST_CASE("raw: --raw-dtype is for the one input that is headerless") {
  MemoryFileSystem files;
  put_file(files, "e.npy", npy<std::int64_t>({1, 2}, {0, 1}));
  put_file(files, "f.npy", bytes_of<float>({1, 2}));
  ImportInputs inputs;
  inputs.edges = "e.npy";
  inputs.features = "f.npy";
  inputs.labels = "y.csv";
  apply_raw_format(files, inputs, "float32", 2);
  CHECK(inputs.edges == "e.npy");
  CHECK(inputs.features == "f.npy:float32x2");
  CHECK(inputs.labels == "y.csv");

  inputs.features = "f.bin:float32x2";
  CHECK_THAT(error_of<UsageError>([&] { apply_raw_format(files, inputs, "int64", 2); }),
             Contains("no input is headerless"));
  inputs.edges = "e.bin";
  inputs.features = "f.dat";
  CHECK_THAT(error_of<UsageError>([&] { apply_raw_format(files, inputs, "int64", 2); }),
             Contains("both e.bin and f.dat are headerless") && Contains("e.bin:int64x2"));
  CHECK_THAT(error_of<UsageError>([&] { apply_raw_format(files, inputs, "float31", 2); }),
             Contains("--raw-dtype float31 --raw-columns 2 is no type"));
}

// <size>/processed/{paper/node_feat.npy (headerless), paper/node_label_19.npy,
// paper__cites__paper/edge_index.npy}
TEST_CASE("layouts: IGB's files import by name") {
  MemoryFileSystem files;
  for (const char* directory : {"tiny/processed/paper", "tiny/processed/paper__cites__paper"}) {
    files.create_directories(directory);
  }
  std::vector<float> features(6 * 4);
  for (std::size_t i = 0; i < features.size(); ++i) features[i] = static_cast<float>(i) + 0.5f;
  ImportOptions options;
  options.inputs.edges = "tiny/processed/paper__cites__paper/edge_index.npy";
  options.inputs.features = "tiny/processed/paper/node_feat.npy";
  options.inputs.labels = "tiny/processed/paper/node_label_19.npy";
  put_file(files, options.inputs.edges,
           npy<std::int64_t>({7, 2}, {0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 0, 0, 3}));
  put_file(files, options.inputs.features, bytes_of(features));
  put_file(files, options.inputs.labels, npy<float>({6}, {0, 1, 2, 0, 1, 18}));
  apply_raw_format(files, options.inputs, "float32", 4);
  options.split_shares = SplitShares{50, 25, 25};
  options.block_rows = 16;
  const Findings findings = import_dataset(files, options, "igb.ooc", Control{});
  CHECK(findings.vertices == 6);
  CHECK(findings.stored_edges == 7);
  CHECK(findings.classes == 19);
  CHECK(findings.split_counts == std::array<std::int64_t, 3>{3, 2, 1});
  const Dataset dataset = Dataset::open(files, "igb.ooc", VerifyPolicy::kFirst);
  std::vector<float> stored(features.size());
  dataset.tensor("features")->read_rows(0, 6, stored.data());
  CHECK(stored == features);
}

void put_ogb_split(FileSystem& files, const std::string& name) {
  files.create_directories("d/split/" + name);
  put_file(files, "d/split/" + name + "/train.csv.gz", gzip("0\n3\n"));
  put_file(files, "d/split/" + name + "/valid.csv.gz", gzip("1\n"));
  put_file(files, "d/split/" + name + "/test.csv.gz", gzip("4\n"));
}

// The shape of ogbn-arxiv and ogbn-products.
void put_ogb_text(FileSystem& files) {
  files.create_directories("d/raw");
  put_file(files, "d/raw/edge.csv.gz", gzip("0,1\n1,2\n4,0\n"));
  put_file(files, "d/raw/node-feat.csv.gz", gzip("0.5,-1\n1,2\n3,4\n5,6\n7,8\n9,1e-3\n"));
  put_file(files, "d/raw/node-label.csv.gz", gzip("0\n1\nnan\n2\n1.0\nnan\n"));
  put_file(files, "d/raw/num-node-list.csv.gz", gzip("6\n"));
  put_file(files, "d/raw/num-edge-list.csv.gz", gzip("3\n"));
  put_file(files, "d/raw/node_year.csv.gz", gzip("2000\n"));
}

TEST_CASE("layouts: OGB's text files become a dataset") {
  MemoryFileSystem files;
  put_ogb_text(files);
  put_ogb_split(files, "time");
  const OgbInputs found = find_ogb_inputs(files, "d", "", {});
  CHECK(found.vertices == 6);
  CHECK(found.inputs.edge_features.empty());
  ImportOptions options;
  options.inputs = found.inputs;
  options.vertices = found.vertices;
  options.block_rows = 16;
  const Findings findings = import_dataset(files, options, "o.ooc", Control{});
  CHECK(findings.stored_edges == 3);
  CHECK(findings.feature_cols == 2);
  CHECK(findings.classes == 3);
  CHECK(findings.unlabelled == 2);
  CHECK(findings.split_counts == std::array<std::int64_t, 3>{2, 1, 1});

  put_file(files, "d/raw/edge-feat.csv.gz", gzip("1\n2\n3\n"));
  ImportInputs named;
  named.labels = "mine.npy";
  const ImportInputs again = find_ogb_inputs(files, "d", "time", named).inputs;
  CHECK(again.edge_features == "d/raw/edge-feat.csv.gz");
  CHECK(again.labels == "mine.npy");
}

TEST_CASE("layouts: papers100M's archives become a dataset") {
  for (const bool compressed : {false, true}) {
    MemoryFileSystem files;
    files.create_directories("d/raw");
    put_ogb_split(files, "time");
    put_file(files, "d/raw/data.npz",
             test::zip({{"edge_index.npy", npy<std::int64_t>({2, 3}, {0, 1, 4, 1, 2, 0})},
                        {"node_feat.npy", npy<float>({6, 2}, std::vector<float>(12, 0.25f))},
                        {"node_year.npy", npy<std::int64_t>({6, 1}, {1, 2, 3, 4, 5, 6})},
                        {"num_nodes_list.npy", npy<std::int64_t>({1}, {6})},
                        {"num_edges_list.npy", npy<std::int64_t>({1}, {3})}},
                       compressed));
    const float nan = std::numeric_limits<float>::quiet_NaN();
    put_file(
        files, "d/raw/node-label.npz",
        test::zip({{"node_label.npy", npy<float>({6, 1}, {0, 171, nan, 2, 1, nan})}}, compressed));
    const OgbInputs found = find_ogb_inputs(files, "d", "", {});
    CHECK(found.inputs.edges == "d/raw/data.npz:edge_index");
    CHECK(found.vertices == 6);
    ImportOptions options;
    options.inputs = found.inputs;
    options.vertices = found.vertices;
    options.block_rows = 16;
    const Findings findings = import_dataset(files, options, "o.ooc", Control{});
    CHECK(findings.stored_edges == 3);
    CHECK(findings.classes == 172);
    CHECK(findings.unlabelled == 2);
  }
}

TEST_CASE("layouts: what is not OGB's is refused") {
  MemoryFileSystem files;
  const auto message = [&](const std::string& split) {
    return error_of<DataError>([&] { find_ogb_inputs(files, "d", split, {}); });
  };
  files.create_directories("d");
  CHECK_THAT(message(""), Contains("there is no directory raw/, d;"));
  files.create_directories("d/raw");
  CHECK_THAT(message(""), Contains("neither edge.csv.gz nor data.npz"));
  put_ogb_text(files);
  CHECK(find_ogb_inputs(files, "d", "", {}).inputs.train.empty());
  put_ogb_split(files, "time");
  put_ogb_split(files, "random");
  CHECK_THAT(message(""), Contains("there are several splits, d/split; choose one, --split-name "
                                   "random or time"));
  CHECK_THAT(message("tme"), Contains("there is no split 'tme', d/split; there is: random, time"));
  CHECK(find_ogb_inputs(files, "d", "random", {}).inputs.test == "d/split/random/test.csv.gz");
  put_file(files, "d/raw/num-node-list.csv.gz", gzip("6\n7\n"));
  CHECK_THAT(message("time"), Contains("not the vertex count of one graph"));
}

}  // namespace
}  // namespace ooc
