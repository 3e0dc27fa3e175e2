#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <set>

#include "storage/base/errors.h"
#include "storage/dataset/dataset_verify.h"
#include "tests/support/edit_dataset.h"
#include "tests/support/tiny_dataset.h"

using namespace ooc;
using Catch::Matchers::Contains;
using test::MemoryFileSystem;

namespace {

constexpr const char* kPath = "/tiny.ooc";

test::TinyDataset small(std::int64_t vertices = 11) {
  test::TinyDataset spec;
  spec.vertices = vertices;
  spec.feature_cols = 9;  // padded to 16
  spec.block_rows = 8;
  spec.permute = true;
  spec.edges = test::random_edges(vertices, 3 * vertices, 9);
  return spec;
}

std::string path_of(const std::string& name) { return join_path(kPath, name); }

void overwrite(FileSystem& files, const std::string& name, std::span<const std::byte> bytes) {
  files.create(path_of(name))->write_at(0, bytes);
}

std::vector<std::string> faults(FileSystem& files) { return verify_dataset(files, kPath).faults; }

// That there is one fault, and what it says.
std::string fault(FileSystem& files) {
  const std::vector<std::string> found = faults(files);
  INFO((found.empty() ? std::string("no fault") : found.back()));
  CHECK(found.size() == 1);
  return found.empty() ? "" : found[0];
}

}  // namespace

TEST_CASE("verify: every flipped byte of every file is found, and its file named") {
  MemoryFileSystem files;
  test::TinyDataset spec = small();
  spec.names = true;
  test::write_tiny_dataset(files, spec);
  REQUIRE(faults(files).empty());
  const std::vector<std::string> names = files.list(kPath);
  REQUIRE(names.size() == 10);
  for (const std::string& name : names) {
    std::vector<std::byte> bytes = read_file(files, path_of(name));
    const auto file = files.update(path_of(name));
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      const auto flipped = static_cast<std::byte>(1u << at % 8) ^ bytes[at];
      file->write_at(at, {&flipped, 1});
      const std::vector<std::string> found = faults(files);
      file->write_at(at, {&bytes[at], 1});
      if (found.empty()) FAIL(name << ": byte " << at << " went unnoticed");
      if (found[0].find(path_of(name)) == std::string::npos) {
        FAIL(name << ": byte " << at << " is said to be: " << found[0]);
      }
    }
  }
  CHECK(faults(files).empty());
}

TEST_CASE("verify: every truncation, and bytes after the end, are found") {
  MemoryFileSystem files;
  test::write_tiny_dataset(files, small());
  for (const std::string& name : files.list(kPath)) {
    const std::vector<std::byte> bytes = read_file(files, path_of(name));
    const std::size_t step = name == kManifestFile ? 1 : 37;
    for (std::size_t size = 0; size < bytes.size(); size += step) {
      overwrite(files, name, std::span(bytes).first(size));
      const std::vector<std::string> found = faults(files);
      if (found.empty()) FAIL(name << " of " << size << " bytes went unnoticed");
      if (found[0].find(path_of(name)) == std::string::npos) FAIL(name << ": " << found[0]);
    }
    for (const char more : {'\0', '\n', 'x'}) {
      std::vector<std::byte> longer = bytes;
      longer.push_back(static_cast<std::byte>(more));
      overwrite(files, name, longer);
      CHECK_THAT(fault(files), Contains(path_of(name)));
    }
    overwrite(files, name, bytes);
  }
  CHECK(faults(files).empty());
}

TEST_CASE("verify: a missing file, a foreign one and one of another dataset are named") {
  MemoryFileSystem files, others;
  test::write_tiny_dataset(files, small());
  test::TinyDataset other = small();
  other.seed = 2;
  other.edges = test::random_edges(11, 33, 10);
  test::write_tiny_dataset(others, other);
  for (const std::string& name : files.list(kPath)) {
    if (name == kManifestFile) continue;
    INFO(name);
    const std::vector<std::byte> bytes = read_file(files, path_of(name));
    const std::vector<std::byte> foreign = read_file(others, path_of(name));
    files.remove_all(path_of(name));
    CHECK_THAT(fault(files), Contains(path_of(name)));
    overwrite(files, name, foreign);
    if (foreign != bytes) CHECK_THAT(fault(files), Contains(path_of(name)));
    overwrite(files, name, bytes);
  }
  files.create(path_of("edges.in.tmp"))->close();
  const VerifyReport report = verify_dataset(files, kPath);
  CHECK(report.faults.empty());
  CHECK(report.foreign_files == std::vector<std::string>{"edges.in.tmp"});
  files.remove_all(path_of(kManifestFile));
  CHECK_THROWS_AS(faults(files), DataError);
}

TEST_CASE("verify: every damaged chunk is listed with its number and offset") {
  MemoryFileSystem files;
  test::TinyDataset spec = small(100);
  spec.feature_cols = 40;
  test::write_tiny_dataset(files, spec);
  const std::vector<std::byte> before = read_file(files, path_of("features"));
  const auto flip = [&](const std::string& name, std::uint64_t at) {
    std::vector<std::byte> byte(1);
    read_exact(*files.open(path_of(name)), at, byte);
    byte[0] ^= std::byte{1};
    files.update(path_of(name))->write_at(at, byte);
  };
  const ChunkFileReader reader(files, path_of("features"), ChunkFileKind::kVertexTensor,
                               VerifyPolicy::kNever);
  REQUIRE(reader.shape().chunk_count == 26);
  std::set<std::string> expected;
  for (const std::uint64_t chunk : {3u, 4u, 25u}) {
    flip("features", reader.entry(chunk).offset + 5);
    expected.insert(fmt::format(
        "chunk {} has the wrong checksum, /tiny.ooc/features, offset {}; import the dataset again",
        chunk, reader.entry(chunk).offset));
  }
  flip("labels", kChunkAlignment + 1);
  expected.insert(
      "chunk 0 has the wrong checksum, /tiny.ooc/labels, offset 4096; import the dataset again");
  flip("ids", 700);
  expected.insert(
      "a gap between chunks is not zero, /tiny.ooc/ids, offset 700; import the dataset "
      "again");
  const std::vector<std::string> found = faults(files);
  CHECK(std::set<std::string>(found.begin(), found.end()) == expected);
}

TEST_CASE("verify: a list of faults ends somewhere") {
  MemoryFileSystem files;
  test::TinyDataset spec = small(8 * 250);
  test::write_tiny_dataset(files, spec);
  const auto file = files.update(path_of("features"));
  for (std::uint64_t chunk = 0; chunk < 250; ++chunk) {
    const std::byte wrong{0x55};
    file->write_at(kChunkAlignment * (chunk + 1) + 2, {&wrong, 1});
  }
  CHECK(faults(files).size() == kMaxFaults);
}

TEST_CASE("verify: what was written wrong is found though every checksum holds") {
  MemoryFileSystem files;
  const test::TinyDataset spec = small(20);
  test::write_tiny_dataset(files, spec);
  const auto column = [&]<class T>(const std::string& name, std::vector<T> values,
                                   std::int64_t cols = 1) {
    std::vector<T> kept(values.size());
    {
      const Dataset dataset = Dataset::open(files, kPath, VerifyPolicy::kFirst);
      dataset.tensor(name)->read_rows(0, 20, kept.data());
    }
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(values[i] + kept[i]);
    test::replace_tensor<T>(files, kPath, name, cols, values);
    const std::string found = fault(files);
    test::replace_tensor<T>(files, kPath, name, cols, kept);
    CHECK(faults(files).empty());
    return found;
  };
  const auto one = []<class T>(std::size_t count, std::size_t at, T delta) {
    std::vector<T> values(count, T{0});
    values[at] = delta;
    return values;
  };
  CHECK_THAT(column("degrees", one(60, 3 * 7 + 1, std::int32_t{1}), 3),
             Contains("degrees disagree with the edges, /tiny.ooc/degrees, row 7"));
  CHECK_THAT(column("ids", one(20, 5, std::int64_t{20})), Contains("/tiny.ooc/ids, row 5"));
  CHECK_THAT(column("ids", std::vector<std::int64_t>(20, 1)), Contains("ids are no permutation"));
  CHECK_THAT(column("labels", one(20, 6, std::int32_t{3})), Contains("/tiny.ooc/labels, row 6"));
  CHECK_THAT(column("splits", one(20, 6, std::uint8_t{4})), Contains("/tiny.ooc/splits, row 6"));
}

TEST_CASE("verify: a manifest that does not fit its files is refused") {
  const auto after = [](const std::function<void(Manifest&)>& edit) {
    MemoryFileSystem files;
    test::write_tiny_dataset(files, small(20));
    test::edit_manifest(files, kPath, edit);
    const std::vector<std::string> found = faults(files);
    return found.empty() ? std::string() : found[0];
  };
  CHECK(after([](Manifest&) {}).empty());
  CHECK_THAT(after([](Manifest& m) { m.edges.edges += 1; }), Contains("/tiny.ooc/edges.in"));
  CHECK_THAT(after([](Manifest& m) { m.files.erase("ids"); }), Contains("/tiny.ooc/ids"));
  CHECK_THAT(after([](Manifest& m) { m.files.erase("features"); }), Contains("features"));
  CHECK_THAT(after([](Manifest& m) { m.files["weights"] = {}; }), Contains("'weights'"));
  CHECK_THAT(after([](Manifest& m) { m.symmetric = true; }), Contains("edges.out"));
  CHECK_THAT(after([](Manifest& m) { m.split_counts[1] -= 1; }), Contains("/tiny.ooc/splits"));
  CHECK_THAT(after([](Manifest& m) { m.feature_dtype = DType::kF16; }), Contains("features"));
  CHECK_THAT(after([](Manifest& m) { m.classes = 2; }), Contains("/tiny.ooc/labels"));
}

TEST_CASE("verify: values are finite or missing, and as many are missing as the manifest says") {
  const auto after = [](std::int64_t at, float value, std::int64_t more_missing) {
    MemoryFileSystem files;
    test::TinyDataset spec = small(20);
    spec.targets = 2;
    spec.permute = false;
    const Dataset dataset = test::write_tiny_dataset(files, spec);
    std::vector<float> values(40);
    dataset.tensor("labels")->read_rows(0, 20, values.data());
    values[static_cast<std::size_t>(at)] = value;
    test::replace_tensor<float>(files, kPath, "labels", 2, values, [&](Manifest& manifest) {
      manifest.missing_train_labels += more_missing;
    });
    const std::vector<std::string> found = faults(files);
    return found.empty() ? std::string() : found[0];
  };
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  // Vertex 2 is in the train split, 4 in none.
  CHECK(after(2 * 2, 0.5F, 0).empty());
  CHECK(after(2 * 2, kNone, 1).empty());
  CHECK(after(4 * 2, kNone, 0).empty());
  CHECK_THAT(after(2 * 2, kNone, 0),
             Contains("the train split lacks 3 labels, the manifest says 2, /tiny.ooc/labels"));
  CHECK_THAT(after(2 * 2, INFINITY, 0), Contains("not finite, /tiny.ooc/labels, row 2"));
  CHECK_THAT(after(2 * 2, 0.5F, 1000), Contains("manifest with impossible counts"));
}

TEST_CASE("verify: padding is zero, in tensors too") {
  MemoryFileSystem files;
  test::write_tiny_dataset(files, small(8));
  // The same tensor with something in a column of the padding, and right checksums.
  ChunkFileShape shape;
  {
    const ChunkFileReader reader(files, path_of("features"), ChunkFileKind::kVertexTensor,
                                 VerifyPolicy::kFirst);
    shape = reader.shape();
    std::vector<std::byte> payload(reader.chunk(0).begin(), reader.chunk(0).end());
    payload[64 * 2 + 9 * 4 + 3] = std::byte{1};  // row 2, column 9
    test::edit_manifest(files, kPath, [&](Manifest& manifest) {
      ChunkFileWriter writer(files, path_of("features"), shape);
      const std::span<const std::byte> part(payload);
      writer.write_next({&part, 1}, 8);
      manifest.files["features"] = writer.finish();
    });
  }
  CHECK_THAT(fault(files),
             Contains("vertex chunk 0: its padding is not zero, /tiny.ooc/features, offset 4263"));
}
