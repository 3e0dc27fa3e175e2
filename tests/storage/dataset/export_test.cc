#include <catch2/catch.hpp>
#include <cstring>

#include "storage/base/errors.h"
#include "storage/dataset/dataset_export.h"
#include "tests/support/edit_dataset.h"
#include "tests/support/tiny_dataset.h"

using namespace ooc;
using Catch::Matchers::Contains;
using test::MemoryFileSystem;

namespace {

constexpr const char* kPath = "/tiny.ooc";
constexpr std::int64_t kVertices = 100;

test::TinyDataset graph() {
  test::TinyDataset spec;
  spec.vertices = kVertices;
  spec.permute = true;
  spec.edges = test::random_edges(kVertices, 400, 4);
  return spec;
}

std::vector<ExportedArray> run_export(FileSystem& files, bool force = false,
                                      std::int64_t memory_bytes = kLeastExportBytes,
                                      const Control& control = {}) {
  const Dataset dataset = Dataset::open(files, kPath, VerifyPolicy::kFirst);
  return export_dataset(files, dataset, {"/out", force, memory_bytes}, control);
}

// The elements of an exported array, after its header of 64 or 128 bytes.
template <class T>
std::vector<T> elements(FileSystem& files, const std::string& name) {
  const std::vector<std::byte> bytes = read_file(files, "/out/" + name);
  const std::size_t begin =
      10 + static_cast<std::size_t>(bytes[8]) + 256 * static_cast<std::size_t>(bytes[9]);
  REQUIRE(begin % 64 == 0);
  std::vector<T> values((bytes.size() - begin) / sizeof(T));
  std::memcpy(values.data(), bytes.data() + begin, values.size() * sizeof(T));
  return values;
}

}  // namespace

TEST_CASE("export: rows come back in the original order, whatever the dataset's") {
  MemoryFileSystem files;
  const test::TinyDataset spec = graph();
  test::write_tiny_dataset(files, spec);
  const std::vector<ExportedArray> arrays = run_export(files);
  CHECK(arrays.size() == 6);
  const auto features = elements<float>(files, "features.npy");
  const auto labels = elements<std::int64_t>(files, "labels.npy");
  REQUIRE(features.size() == kVertices * 5);
  REQUIRE(labels.size() == kVertices);
  for (std::int64_t v = 0; v < kVertices; ++v) {
    CHECK(features[static_cast<std::size_t>(v * 5 + 2)] == test::tiny_feature(spec, v, 2));
    CHECK(labels[static_cast<std::size_t>(v)] == (v * 7 + v / 5) % 3);
  }
  std::vector<std::int64_t> train;
  for (std::int64_t v = 0; v < kVertices; ++v) {
    if (v % 5 == 0 || v % 5 == 2) train.push_back(v);
  }
  CHECK(elements<std::int64_t>(files, "train_idx.npy") == train);
  std::vector<std::pair<std::int64_t, std::int64_t>> expected, found;
  for (const Edge& edge : spec.edges) expected.emplace_back(edge.source, edge.destination);
  const auto edges = elements<std::int64_t>(files, "edges.npy");
  for (std::size_t i = 0; i < edges.size(); i += 2) found.emplace_back(edges[i], edges[i + 1]);
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  CHECK(found == expected);
}

TEST_CASE("export: 16-bit features come back as fp32, multi-label labels as 0, 1 and -1") {
  MemoryFileSystem files;
  test::write_tiny_dataset(files, graph());
  test::narrow_features<BFloat16>(files, kPath, false);
  std::vector<std::uint8_t> labels(kVertices * 12);
  std::vector<std::int64_t> ids(kVertices);
  {
    const Dataset dataset = Dataset::open(files, kPath, VerifyPolicy::kFirst);
    dataset.tensor("ids")->read_rows(0, kVertices, ids.data());
  }
  const auto label = [](std::int64_t id, std::int64_t c) {
    return id % 5 == 4 ? kUnlabelled : static_cast<std::uint8_t>((id + c) % 4 == 0);
  };
  for (std::size_t row = 0; row < ids.size(); ++row) {
    for (std::size_t c = 0; c < 12; ++c) labels[row * 12 + c] = label(ids[row], int(c));
  }
  test::replace_tensor<std::uint8_t>(files, kPath, "labels", 12, labels, [](Manifest& manifest) {
    manifest.labels = LabelKind::kMulti;
    manifest.classes = 12;
  });
  run_export(files);
  const auto features = elements<float>(files, "features.npy");
  const auto exported = elements<std::int8_t>(files, "labels.npy");
  REQUIRE(exported.size() == kVertices * 12);
  for (std::int64_t v = 0; v < kVertices; ++v) {
    for (std::int64_t c = 0; c < 12; ++c) {
      CHECK(exported[static_cast<std::size_t>(v * 12 + c)] ==
            static_cast<std::int8_t>(label(v, c)));
    }
    CHECK(features[static_cast<std::size_t>(v * 5)] ==
          Approx(test::tiny_feature(graph(), v, 0)).epsilon(0.01));
  }
}

TEST_CASE("export: whatever write, sync or rename fails, the old output or the new one is there") {
  MemoryFileSystem memory;
  test::write_tiny_dataset(memory, graph());
  run_export(memory);
  const std::size_t size = read_file(memory, "/out/edges.npy").size();
  test::FaultyFileSystem counting(memory);
  run_export(counting, true);
  const std::int64_t writes = counting.counts.writes, syncs = counting.counts.syncs;
  REQUIRE(writes > 6);
  REQUIRE(syncs > 6);
  for (std::int64_t n = 1; n <= writes + syncs + 1; ++n) {
    test::FaultyFileSystem files(memory);
    files.faults.first_failing_write = n <= writes ? n : 0;
    files.faults.first_failing_sync = n > writes && n <= writes + syncs ? n - writes : 0;
    files.faults.first_failing_rename = n > writes + syncs ? 1 : 0;
    files.faults.torn_write = true;
    CHECK_THROWS_AS(run_export(files, true), IoError);
    CHECK(memory.list("/out").size() == 6);
    CHECK(read_file(memory, "/out/edges.npy").size() == size);
  }
  run_export(memory, true);
  CHECK_FALSE(memory.exists("/out.partial"));
}

TEST_CASE("export: it answers to an interruption in every phase, and leaves nothing") {
  MemoryFileSystem files;
  test::write_tiny_dataset(files, graph());
  for (const std::string last : {"edges", "features", "labels", "splits"}) {
    std::atomic<bool> stop{false};
    const Control control{
        [&](std::string_view phase, double, double) { stop = stop || phase == "writing " + last; },
        &stop};
    INFO(last);
    CHECK_THROWS_AS(run_export(files, false, kLeastExportBytes, control), Interrupted);
    CHECK_FALSE(files.exists("/out"));
    CHECK_FALSE(files.exists("/out.partial"));
  }
}

TEST_CASE("export: a row that does not fit the memory is refused with what it takes") {
  MemoryFileSystem files;
  test::TinyDataset spec = graph();
  spec.vertices = 2;
  spec.feature_cols = 200000;  // 800,000 bytes a row
  spec.edges = {{0, 1}};
  test::write_tiny_dataset(files, spec);
  CHECK_THROWS_WITH(run_export(files), Contains("export needs 1.8 MiB") && Contains("--memory"));
  CHECK_NOTHROW(run_export(files, false, 2 << 20));
}

TEST_CASE("export: an original id that no vertex has is a fault of the dataset") {
  MemoryFileSystem files;
  test::write_tiny_dataset(files, graph());
  std::vector<std::int64_t> ids(kVertices, 7);
  ids[3] = std::int64_t{1} << 50;
  test::replace_tensor<std::int64_t>(files, kPath, "ids", 1, ids);
  CHECK_THROWS_WITH(run_export(files), Contains("original id") && Contains("/tiny.ooc/ids"));
  CHECK_FALSE(files.exists("/out"));
}
