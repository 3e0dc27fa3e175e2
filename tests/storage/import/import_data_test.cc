// Imports the real graphs below $OOC_DATA_DIR, one folder each, and verifies what was written.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"
#include "storage/import/importer.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"
#include "tests/support/skip.h"

namespace ooc {
namespace {

// What is known of the graphs: rows of the edge list, as it is stored with --undirected, features,
// classes (0: none), train, valid and test vertices.
struct Known {
  const char* name;
  std::int64_t vertices, rows, stored, features, classes;
  std::array<std::int64_t, 3> splits;
};

constexpr Known kGraphs[] = {
    {"cora", 2708, 5278, 10556, 1433, 7, {140, 500, 1000}},
    {"citeseer", 3327, 4676, 9228, 3703, 6, {120, 500, 1000}},
    {"amazon_photo", 7650, 143663, 238163, 745, 8, {4590, 1530, 1530}},
    {"amazon_computers", 13752, 287209, 491722, 767, 10, {8251, 2750, 2751}},
    {"coauthor_physics", 34493, 495924, 495924, 8415, 5, {20695, 6898, 6900}},
    {"facebook_pages", 22470, 171002, 341825, 4714, 4, {13482, 4494, 4494}},
    {"flickr_attr", 7575, 479476, 479476, 12047, 9, {4545, 1515, 1515}},
    {"tolokers", 11758, 519000, 1038000, 10, 2, {5879, 2939, 2940}},
    {"twitch_union", 36890, 492575, 985150, 3170, 2, {9498, 7126, 20266}},
    {"bitcoin_otc", 5881, 21434, 42868, 0, 0, {0, 0, 0}},
    {"heco_dblp", 26128, 119783, 239566, 0, 4, {240, 1000, 1000}},
    {"pcg", 3233, 74702, 74702, 32, 15, {1939, 646, 648}},
    {"eukaryote_go", 7766, 13818, 23371, 32, 22, {4659, 1553, 1554}},
};

TEST_CASE("real graphs: each imports and verifies", "[.][data]") {
  const char* const data = std::getenv("OOC_DATA_DIR");
  if (data == nullptr) test::skip("OOC_DATA_DIR is not set");
  FileSystem& files = posix_file_system();
  if (!files.is_directory(data)) test::skip("OOC_DATA_DIR is no directory");
  for (const Known& known : kGraphs) {
    const std::string directory = join_path(data, known.name);
    if (!files.is_directory(directory)) {
      WARN("skipped: there is no " << directory);
      continue;
    }
    INFO(known.name);
    const test::TemporaryDirectory output;
    ImportOptions options;
    options.inputs = discover_inputs(files, directory, {});
    options.edges.undirected = true;
    options.feature_norm = FeatureNorm::kRow;
    options.order = VertexOrder::kBalanced;
    const Findings findings = import_dataset(files, options, output / "g.ooc", Control{});
    CHECK(findings.vertices == known.vertices);
    CHECK(findings.input.edges == known.rows);
    CHECK(findings.stored_edges == known.stored);
    CHECK(findings.feature_cols == known.features);
    CHECK(findings.classes == known.classes);
    CHECK(findings.split_counts == known.splits);
    const Dataset dataset = Dataset::open(files, output / "g.ooc", VerifyPolicy::kFirst);
    dataset.verify();
    // Where two edges join a pair, their features differ.
    CHECK(dataset.manifest().symmetric == (std::string(known.name) != "eukaryote_go"));
  }
}

}  // namespace
}  // namespace ooc
