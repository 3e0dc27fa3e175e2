#include <fmt/format.h>
#include <tbb/global_control.h>

#include <catch2/catch.hpp>
#include <string>

#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"
#include "storage/import/importer.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"
#include "tests/support/random_graph.h"

namespace ooc {
namespace {

using test::MemoryFileSystem;

constexpr const char* kOutput = "out/g.ooc";

// A graph of `edges` edges, whose ids are strings where `names`, as inputs in the directory "in".
ImportOptions put_graph(FileSystem& files, std::int64_t edges, bool names) {
  constexpr std::int64_t kVertices = 50;
  files.create_directories("in");
  files.create_directories("out");
  std::vector<std::int64_t> ends;
  std::string lines;
  for (const Edge& edge : test::random_edges(kVertices, edges, 7)) {
    ends.insert(ends.end(), {edge.source, edge.destination});
    lines += fmt::format("v{},v{}\n", edge.source, edge.destination);
  }
  if (names) {
    test::put_file(files, "in/edges.csv", lines);
  } else {
    test::put_file(files, "in/edges.npy", test::npy<std::int64_t>({edges, 2}, ends));
  }
  std::vector<float> features(kVertices * 9, 0.25f);
  test::put_file(files, "in/features.npy", test::npy<float>({kVertices, 9}, features));
  ImportOptions options;
  options.inputs = discover_inputs(files, "in", {});
  options.block_rows = 16;
  options.order = VertexOrder::kRandom;
  options.force = true;
  options.remap_ids = names;
  options.rows.sorted = names;
  return options;
}

// The edges of the dataset, whole; -1 where there is none.
std::int64_t edges_of_output(FileSystem& files) {
  if (!files.exists(kOutput)) return -1;
  const Dataset dataset = Dataset::open(files, kOutput, VerifyPolicy::kFirst);
  dataset.verify();
  return dataset.edges();
}

// Lets imports die at every change in turn; returns how many there were.
std::int64_t die_everywhere(std::int64_t before, bool names) {
  const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
  std::int64_t change = 1;
  for (;; ++change) {
    MemoryFileSystem disk;
    if (before > 0) import_dataset(disk, put_graph(disk, before, names), kOutput, Control{});
    const ImportOptions options = put_graph(disk, 200, names);
    test::FaultyFileSystem files(disk);
    files.faults.dies_at_change = change;
    bool died = false;
    try {
      import_dataset(files, options, kOutput, Control{});
    } catch (const IoError&) {
      died = true;
    }
    const std::int64_t found = edges_of_output(disk);
    INFO("change " << change);
    CHECK((found == 200 || (died && found == (before > 0 ? before : -1))));
    if (!died) break;
    if (found == 200 && before == 0) {  // nothing else is left then, and not even a lock for long
      ImportOptions careful = options;
      careful.force = false;
      CHECK_THROWS_AS(import_dataset(disk, careful, kOutput, Control{}), UsageError);
      CHECK(disk.list("out") == std::vector<std::string>{"g.ooc"});
    }
    import_dataset(disk, options, kOutput, Control{});  // what is left does not stand in the way
    REQUIRE(edges_of_output(disk) == 200);
    REQUIRE(disk.list("out") == std::vector<std::string>{"g.ooc"});
  }
  return change;
}

TEST_CASE("import: dying at any write, sync or rename leaves no dataset or a whole one") {
  CHECK(die_everywhere(0, false) > 40);
  CHECK(die_everywhere(0, true) > 45);
}

TEST_CASE("import: dying while it replaces a dataset leaves the old one or the new one") {
  CHECK(die_everywhere(120, false) > 40);
}

}  // namespace
}  // namespace ooc
