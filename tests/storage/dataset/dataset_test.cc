#include "storage/dataset/dataset.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <tuple>

#include "storage/base/errors.h"
#include "storage/dataset/dataset_writer.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/random_graph.h"

using namespace ooc;
using Catch::Matchers::Contains;
using test::MemoryFileSystem;

namespace {

constexpr const char* kPath = "/g.ooc";
constexpr std::int64_t kVertices = 150;
constexpr std::int64_t kCols = 40;

void write_dataset(FileSystem& files, std::vector<Edge> edges, bool force = false,
                   std::int64_t block_rows = 16) {
  DatasetWriter writer(files, kPath, force, kVertices, block_rows);
  writer.write_edges(edges);
  std::vector<float> features(kVertices * kCols, 0.5f);
  writer.features(kCols).append_rows(features.data(), kVertices);
  writer.finish_features();
  std::vector<std::int32_t> labels(kVertices, 1);
  std::vector<std::uint8_t> splits(kVertices, 0);
  splits[3] = 1;
  splits[4] = 2;
  splits[5] = splits[6] = 3;
  writer.write_labels(labels, 2);
  writer.write_splits(splits);
  writer.write_ids({});
  writer.commit();
}

Dataset open(FileSystem& files) { return Dataset::open(files, kPath, VerifyPolicy::kFirst); }

std::vector<std::pair<VertexId, VertexId>> edges_of(const EdgeFile& file) {
  std::vector<std::pair<VertexId, VertexId>> edges;
  for (std::int64_t span = 0; span < file.layout().span_count(); ++span) {
    for (std::int64_t panel = 0; panel < file.layout().panel_count(); ++panel) {
      for (const PanelTile& entry : file.tiles(span, panel)) {
        for_each_edge(entry.tile, [&](std::uint16_t row, std::uint16_t source) {
          edges.emplace_back(span * file.layout().span_rows + source,
                             entry.block * file.layout().block_rows + row);
        });
      }
    }
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

std::vector<std::pair<VertexId, VertexId>> sorted_pairs(const std::vector<Edge>& edges,
                                                        bool reversed) {
  std::vector<std::pair<VertexId, VertexId>> pairs;
  for (const Edge& edge : edges) {
    pairs.emplace_back(edge.source, edge.destination);
    if (reversed) std::swap(pairs.back().first, pairs.back().second);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

// File systems with a place to write.
struct OnDisk {
  test::TemporaryDirectory directory;
  FileSystem& files = posix_file_system();
  std::string root = directory.path();
};
struct InMemory {
  MemoryFileSystem files;
  std::string root;
};

}  // namespace

TEST_CASE("dataset: both directions hold the edges that went in") {
  for (const std::int64_t count : {0, 1, 700, 20000}) {
    MemoryFileSystem files;
    const std::vector<Edge> edges = test::random_edges(kVertices, count, 5);
    write_dataset(files, edges);
    const Dataset dataset = open(files);
    INFO(count << " edges");
    CHECK(edges_of(dataset.edge_file(Direction::kIn)) == sorted_pairs(edges, false));
    CHECK(edges_of(dataset.edge_file(Direction::kOut)) == sorted_pairs(edges, true));
    CHECK_NOTHROW(dataset.verify());
    CHECK(dataset.manifest().split_counts[2] == 2);
  }
}

TEST_CASE("dataset: a symmetric graph keeps one edge file, a multiplicity that differs breaks it") {
  MemoryFileSystem files;
  std::vector<Edge> edges = test::with_reverse(test::random_edges(kVertices, 500, 6));
  write_dataset(files, edges);
  CHECK(open(files).manifest().symmetric);
  CHECK_FALSE(files.exists("/g.ooc/edges.out"));
  Edge once = edges[0].source == edges[0].destination ? edges[1] : edges[0];
  edges.push_back(once);  // u -> v twice, v -> u once
  write_dataset(files, edges, true);
  CHECK_FALSE(open(files).manifest().symmetric);
}

TEST_CASE("dataset: degrees count parallel edges and keep self loops apart") {
  MemoryFileSystem files;
  write_dataset(files, {{1, 2}, {1, 2}, {2, 1}, {3, 3}, {3, 3}, {3, 4}});
  const Dataset dataset = open(files);
  std::vector<std::int32_t> degrees(kVertices * kDegreeColumns);
  dataset.tensor("degrees")->read_rows(0, kVertices, degrees.data());
  const auto row = [&](std::size_t v) {
    return std::tuple(degrees[v * 3], degrees[v * 3 + 1], degrees[v * 3 + 2]);
  };
  CHECK(row(1) == std::tuple(1, 2, 0));
  CHECK(row(2) == std::tuple(2, 1, 0));
  CHECK(row(3) == std::tuple(0, 1, 2));
  CHECK(row(4) == std::tuple(1, 0, 0));
  CHECK(row(0) == std::tuple(0, 0, 0));
}

TEST_CASE("dataset: an existing output needs force, and force spares what is no dataset") {
  MemoryFileSystem files;
  write_dataset(files, {{0, 1}});
  CHECK_THROWS_WITH(write_dataset(files, {{0, 1}}), Contains("output exists, /g.ooc; use --force"));
  write_dataset(files, {{0, 1}, {1, 2}}, true);
  CHECK(open(files).edges() == 2);
  files.remove_all(kPath);
  files.create_directories("/g.ooc/precious");
  CHECK_THROWS_AS(write_dataset(files, {{0, 1}}, true), UsageError);
  CHECK(files.exists("/g.ooc/precious"));
}

TEST_CASE("dataset: whatever write or sync fails, the old dataset or the new one is there") {
  MemoryFileSystem memory;
  write_dataset(memory, {{0, 1}});
  test::FaultyFileSystem counting(memory);
  write_dataset(counting, {{0, 1}, {1, 2}}, true);
  const std::int64_t writes = counting.counts.writes, syncs = counting.counts.syncs;
  REQUIRE(writes > 10);
  for (std::int64_t n = 1; n <= writes + syncs; ++n) {
    MemoryFileSystem fresh;
    write_dataset(fresh, {{0, 1}});
    test::FaultyFileSystem files(fresh);
    files.faults.first_failing_write = n <= writes ? n : 0;
    files.faults.first_failing_sync = n > writes ? n - writes : 0;
    files.faults.torn_write = true;
    CHECK_THROWS_AS(write_dataset(files, {{0, 1}, {1, 2}}, true), IoError);
    const Dataset dataset = open(fresh);
    CHECK_NOTHROW(dataset.verify());
    CHECK((dataset.edges() == 1 || dataset.edges() == 2));
  }
}

TEST_CASE("dataset: what is no dataset, or another version's, says so") {
  MemoryFileSystem files;
  CHECK_THROWS_WITH(open(files), Contains("dataset not found"));
  files.create_directories(kPath);
  CHECK_THROWS_WITH(open(files), Contains("not a dataset directory"));
  files.remove_all(kPath);
  write_dataset(files, {{0, 1}});
  const std::string manifest = "/g.ooc/manifest.json";
  const auto bytes = read_file(files, manifest);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto rewrite = [&](std::string from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    write_file_atomically(files, manifest, std::as_bytes(std::span(changed)));
  };
  rewrite("\"version\": 1", "\"version\": 7");
  CHECK_THROWS_WITH(open(files), Contains("dataset format version 7 is newer"));
  rewrite("\"symmetric\": false", "\"symmetric\": true");
  CHECK_THROWS_WITH(open(files), Contains("manifest has the wrong checksum"));
  rewrite("{", "");
  CHECK_THROWS_WITH(open(files), Contains("damaged manifest, /g.ooc/manifest.json; "));
  rewrite("\"format\"", "\"format\"");
  CHECK_NOTHROW(open(files));
  files.remove_all("/g.ooc/labels");
  CHECK_THROWS_AS(open(files), DataError);
}

TEST_CASE("dataset: a file of another dataset is refused") {
  MemoryFileSystem files;
  write_dataset(files, {{0, 1}});
  files.rename("/g.ooc/edges.in", "/other");
  write_dataset(files, {{0, 2}}, true);
  files.rename("/other", "/g.ooc/edges.in");
  CHECK_THROWS_WITH(open(files), Contains("does not belong to this dataset's manifest"));
}

// Makes the manifest name a foreign file, as a faulty writer would have.
static void claim(FileSystem& files, const std::string& name, ChunkFileKind kind) {
  const std::string path = "/g.ooc/manifest.json";
  const auto bytes = read_file(files, path);
  Manifest manifest = manifest_from_text(
      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path);
  const ChunkFileReader file(files, "/g.ooc/" + name, kind, VerifyPolicy::kFirst);
  manifest.files[name] = file.info();
  const std::string text = manifest_to_text(manifest);
  write_file_atomically(files, path, std::as_bytes(std::span(text)));
}

TEST_CASE("dataset: verify finds edges and degrees that disagree though every checksum holds") {
  MemoryFileSystem files;
  write_dataset(files, {{0, 1}});
  files.rename("/g.ooc/degrees", "/degrees");
  write_dataset(files, {{0, 2}}, true);
  files.rename("/degrees", "/g.ooc/degrees");
  claim(files, "degrees", ChunkFileKind::kVertexTensor);
  const Dataset dataset = open(files);
  CHECK_THROWS_WITH(dataset.verify(), Contains("degrees disagree with the edges"));
}

TEST_CASE("dataset: verify finds different edges in the two directions behind equal degrees") {
  MemoryFileSystem files;
  write_dataset(files, {{0, 3}, {2, 1}});
  files.rename("/g.ooc/edges.out", "/edges.out");
  write_dataset(files, {{0, 1}, {2, 3}}, true);
  files.rename("/edges.out", "/g.ooc/edges.out");
  claim(files, "edges.out", ChunkFileKind::kEdges);
  CHECK_THROWS_WITH(open(files).verify(), Contains("edges.in and edges.out hold different edges"));
}

TEST_CASE("dataset: verify reports each file's chunks and answers to an interruption in each") {
  MemoryFileSystem files;
  write_dataset(files, test::random_edges(kVertices, 700, 5));
  const Dataset dataset = open(files);
  std::atomic<bool> stop{false};
  std::vector<std::string> phases;
  Control control{[&](std::string_view phase, double, double) {
                    if (phases.empty() || phases.back() != phase) phases.emplace_back(phase);
                  },
                  &stop};
  dataset.verify(control);
  CHECK(phases == std::vector<std::string>{"checking edges.in", "checking edges.out",
                                           "checking features", "checking labels",
                                           "checking splits", "checking ids", "checking degrees",
                                           "checking ids and degrees", "checking labels"});
  for (const std::string& last : phases) {
    stop = false;
    control.progress = [&](std::string_view phase, double, double) {
      stop = stop || phase == last;
    };
    CHECK_THROWS_AS(dataset.verify(control), Interrupted);
  }
}

TEMPLATE_TEST_CASE("dataset: two writers of one name do not meet", "", OnDisk, InMemory) {
  TestType place;
  const std::string path = place.root + "/g.ooc";
  {
    DatasetWriter first(place.files, path, false, kVertices, 16);
    CHECK_THROWS_WITH(DatasetWriter(place.files, path, false, kVertices, 16),
                      Contains("another process is writing this output") && Contains(path));
    CHECK(place.files.exists(first.scratch_path("")));  // the refused one took nothing away
  }
  CHECK_FALSE(place.files.exists(path + ".partial"));
}

TEMPLATE_TEST_CASE("dataset: what a dead writer left is replaced, anything else is kept", "",
                   OnDisk, InMemory) {
  TestType place;
  const std::string partial = place.root + "/g.ooc.partial";
  const auto put = [&](const std::string& name) {
    place.files.create_directories(partial);
    place.files.create(join_path(partial, name))->close();
  };
  const auto write = [&] {
    DatasetWriter writer(place.files, place.root + "/g.ooc", true, kVertices, 16);
    CHECK_FALSE(place.files.exists(join_path(partial, "edges.in")));
  };
  place.files.create(partial + ".lock")->close();
  put("edges.in");
  write();
  place.files.create_directories(partial);  // died before it took the lock
  write();
  CHECK_FALSE(place.files.exists(partial));
  CHECK_FALSE(place.files.exists(partial + ".lock"));
  put("thesis.tex");
  CHECK_THROWS_WITH(write(), Contains("taken by something else") && Contains(partial));
  CHECK(place.files.list(partial) == std::vector<std::string>{"thesis.tex"});
}

TEST_CASE("dataset: no lock file is left in a finished dataset, new or replaced") {
  MemoryFileSystem files;
  for (const bool force : {false, true}) {
    write_dataset(files, {{0, 1}}, force);
    CHECK(files.list("/") == std::vector<std::string>{"g.ooc"});
  }
}

TEST_CASE("dataset: copying edges.in, once a graph is not symmetric, can be interrupted") {
  MemoryFileSystem files;
  std::vector<Edge> edges = test::random_edges(kVertices, 9000, 5);
  const std::size_t given = edges.size();
  for (std::size_t i = 0; i < given; ++i) {
    edges.push_back({edges[i].destination, edges[i].source});
  }
  edges.push_back({kVertices - 1, kVertices - 2});
  std::atomic<bool> stop{false};
  int copied = 0;
  Control control;
  control.stop = &stop;
  control.progress = [&](std::string_view phase, double, double) {
    if (phase != "copying edges") return;
    ++copied;
    stop = true;
  };
  {
    DatasetWriter writer(files, kPath, false, kVertices, 16);
    CHECK_THROWS_AS(writer.write_edges(edges, control), Interrupted);
  }
  CHECK(copied == 1);
  CHECK(!files.exists(kPath));
}
