#include "storage/batches/batch_file.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <functional>

#include "storage/base/errors.h"
#include "storage/batches/batches_verify.h"
#include "tests/storage/batches/made_up_batch.h"

using namespace ooc;
using Catch::Matchers::Contains;
using test::FaultyFileSystem;
using test::made_up_batch;
using test::MadeUpBatch;
using test::MemoryFileSystem;

namespace {

constexpr const char* kPath = "/x.batches";

Manifest dataset_manifest(bool carries = true) {
  MemoryFileSystem files;
  test::TinyDataset spec;
  spec.feature_cols = 40;
  spec.edges = test::random_edges(60, 200, 3);
  spec.edge_weights = carries;
  spec.edge_types = carries ? 2 : 0;
  return test::write_tiny_dataset(files, spec).manifest();
}

// Two samples of seven training seeds, and three others.
const std::vector<BatchSection> kSections{
    {Split::kTrain, 2, 7}, {Split::kTrain, 2, 7}, {Split::kTest, 1, 3}};

std::vector<MadeUpBatch> batches_of(const BatchesManifest& manifest) {
  std::vector<MadeUpBatch> batches;
  batches.push_back(made_up_batch(manifest, Split::kTrain, {4, 9, 20}, 1));
  batches.push_back(made_up_batch(manifest, Split::kTrain, {3, 3, 3}, 2));
  batches.push_back(made_up_batch(manifest, Split::kTrain, {4, 17, 17}, 3));
  batches.push_back(made_up_batch(manifest, Split::kTrain, {3, 5, 12}, 4));
  batches.push_back(made_up_batch(manifest, Split::kTest, {3, 6, 60}, 5));
  return batches;
}

BatchesManifest write(FileSystem& files, const std::vector<MadeUpBatch>& batches,
                      const BatchesManifest& manifest, bool force = false) {
  BatchFileWriter writer(files, kPath, force);
  writer.begin(manifest);
  for (const MadeUpBatch& batch : batches) writer.add(batch.view());
  return writer.commit();
}

BatchesManifest write(FileSystem& files) {
  const BatchesManifest manifest = test::made_up_manifest(dataset_manifest(), kSections);
  return write(files, batches_of(manifest), manifest);
}

BatchView read(const BatchFile& file, std::int64_t batch) {
  return file.view(batch, file.file().chunk(static_cast<std::uint64_t>(batch)));
}

std::vector<std::string> faults(FileSystem& files) { return verify_batches(files, kPath).faults; }

std::string path_of(const std::string& name) { return join_path(kPath, name); }

}  // namespace

TEST_CASE("batch_file: batches come back as they were, and what is said of them") {
  for (const bool carries : {false, true}) {
    MemoryFileSystem files;
    const BatchesManifest manifest = test::made_up_manifest(dataset_manifest(carries), kSections);
    const std::vector<MadeUpBatch> batches = batches_of(manifest);
    const BatchesManifest written = write(files, batches, manifest);
    const BatchFile file = BatchFile::open(files, kPath, VerifyPolicy::kFirst);
    CHECK(files.list("/") == std::vector<std::string>{"x.batches"});
    CHECK(files.list(kPath) == std::vector<std::string>{"batches", "manifest.json"});
    CHECK(to_text(file.manifest()) == to_text(written));
    CHECK(file.manifest().checksum == written.checksum);
    CHECK(file.manifest().dataset.checksum == manifest.dataset.checksum);
    CHECK(file.manifest().sections == kSections);
    CHECK(file.manifest().most_rows == std::vector<std::int64_t>{4, 17, 60});
    CHECK(file.manifest().vertices == 112);
    CHECK(file.manifest().seeds() == 17);
    CHECK(file.manifest().section_of(3) == 1);
    CHECK(file.manifest().section_of(4) == 2);
    CHECK(file.manifest().sections_of(Split::kTrain) == std::vector<std::size_t>{0, 1});
    REQUIRE(file.batches() == 5);
    std::int64_t edges = 0;
    std::vector<LabelCounts> labels(3, {0, 0});
    for (std::int64_t i = 0; i < 5; ++i) {
      const MadeUpBatch& expected = batches[static_cast<std::size_t>(i)];
      const BatchView batch = read(file, i);
      CHECK(batch.level_rows == expected.level_rows);
      CHECK(std::equal(batch.edges.begin(), batch.edges.end(), expected.edges.begin(),
                       expected.edges.end()));
      CHECK(std::equal(batch.records.begin(), batch.records.end(), expected.records.begin(),
                       expected.records.end()));
      const auto& tensors = file.layout().tensors();
      REQUIRE(tensors.size() == 5);
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        const std::int64_t rows = BatchLayout::rows_of(tensors[t], batch.level_rows);
        std::vector<float> found, wanted;
        const auto collect = [&](const std::byte* from, std::vector<float>& to) {
          for_each_element<float>(tensors[t], from, rows,
                                  [&](std::int64_t, float value) { to.push_back(value); });
        };
        if (tensors[t].name == "features") {
          collect(batch.rows[t], found);
          collect(expected.rows[t].data(), wanted);
          CHECK(found.size() == static_cast<std::size_t>(rows * 40));
          CHECK(found == wanted);
        } else if (tensors[t].name == "labels" && i < 2) {
          const auto* const of = reinterpret_cast<const std::int32_t*>(batch.rows[t]);
          for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int32_t c = 0; c < 3; ++c)
              ++labels[static_cast<std::size_t>(c)][of[row] == c];
          }
        }
        const auto offset = batch.rows[t] - file.file().chunk(static_cast<std::uint64_t>(i)).data();
        CHECK(offset % BatchLayout::kAlignment == 0);
      }
      edges += static_cast<std::int64_t>(batch.edges.size());
    }
    CHECK(file.manifest().edges == edges);
    CHECK(file.manifest().train_labels == labels);
    CHECK(faults(files).empty());
  }
}

TEST_CASE("batch_file: equal batches make equal bytes") {
  MemoryFileSystem one, other;
  write(one);
  write(other);
  for (const char* name : {kBatchesFile, kManifestFile}) {
    CHECK(read_file(one, path_of(name)) == read_file(other, path_of(name)));
  }
}

TEST_CASE("batch_file: what is not committed is gone, and what is there stays") {
  MemoryFileSystem files;
  const BatchesManifest manifest = test::made_up_manifest(dataset_manifest(), kSections);
  const std::vector<MadeUpBatch> batches = batches_of(manifest);
  {
    BatchFileWriter writer(files, kPath, false);
    writer.begin(manifest);
    writer.add(batches[0].view());
  }
  CHECK(files.list("/").empty());
  CHECK_FALSE(is_batches(files, kPath));
  write(files, batches, manifest);
  CHECK(is_batches(files, kPath));
  CHECK_THROWS_WITH(write(files, batches, manifest),
                    "output exists, /x.batches; use --force to replace it");
  write(files, batches, manifest, true);
  files.create_directories("/y.batches");
  CHECK_FALSE(is_batches(files, "/y.batches"));
  CHECK_THROWS_WITH(BatchFileWriter(files, "/y.batches", true),
                    Contains("--force replaces batches only") && Contains("/y.batches"));
  CHECK(files.list("/") == std::vector<std::string>{"x.batches", "y.batches"});
}

TEST_CASE("batch_file: a full disk leaves nothing") {
  MemoryFileSystem base;
  const BatchesManifest manifest = test::made_up_manifest(dataset_manifest(), kSections);
  const std::vector<MadeUpBatch> batches = batches_of(manifest);
  FaultyFileSystem counting(base);
  write(counting, batches, manifest);
  const std::int64_t writes = counting.counts.writes;
  for (std::int64_t at = 1; at <= writes; ++at) {
    MemoryFileSystem disk;
    FaultyFileSystem files(disk);
    files.faults.first_failing_write = at;
    CHECK_THROWS_WITH(write(files, batches, manifest), Contains("no space left"));
    CHECK(disk.list("/").empty());
  }
}

TEST_CASE("batch_file: every flipped byte, and every truncation, is found, and the file named") {
  MemoryFileSystem files;
  write(files);
  REQUIRE(faults(files).empty());
  for (const std::string& name : files.list(kPath)) {
    std::vector<std::byte> bytes = read_file(files, path_of(name));
    const auto file = files.update(path_of(name));
    for (std::size_t at = 0; at < bytes.size(); at += name == kBatchesFile ? 7 : 1) {
      const auto flipped = static_cast<std::byte>(1u << at % 8) ^ bytes[at];
      file->write_at(at, {&flipped, 1});
      const std::vector<std::string> found = faults(files);
      file->write_at(at, {&bytes[at], 1});
      if (found.empty()) FAIL(name << ": byte " << at << " went unnoticed");
      if (found[0].find(path_of(name)) == std::string::npos) FAIL(name << ": " << found[0]);
    }
    for (std::size_t size = 0; size < bytes.size(); size += 97) {
      files.create(path_of(name))->write_at(0, std::span(bytes).first(size));
      const std::vector<std::string> found = faults(files);
      if (found.empty()) FAIL(name << " of " << size << " bytes went unnoticed");
      if (found[0].find(path_of(name)) == std::string::npos) FAIL(name << ": " << found[0]);
    }
    files.create(path_of(name))->write_at(0, bytes);
  }
  CHECK(faults(files).empty());
}

TEST_CASE("batch_file: a damaged batch is one line, with its number and offset") {
  MemoryFileSystem files;
  write(files);
  const BatchFile file = BatchFile::open(files, kPath, VerifyPolicy::kFirst);
  const std::uint64_t at = file.file().entry(3).offset;
  std::byte byte[1];
  read_exact(*files.open(path_of(kBatchesFile)), at + 100, byte);
  byte[0] ^= std::byte{4};
  files.update(path_of(kBatchesFile))->write_at(at + 100, byte);
  const std::string expected = fmt::format(
      "chunk 3 has the wrong checksum, /x.batches/batches, offset {}; sample the batches again",
      at);
  CHECK(faults(files) == std::vector<std::string>{expected});
  const BatchFile damaged = BatchFile::open(files, kPath, VerifyPolicy::kFirst);
  CHECK_NOTHROW(read(damaged, 2));
  CHECK_THROWS_WITH(read(damaged, 3), expected);
}

TEST_CASE("batch_file: batches that checksums say are whole, but none can be trained on") {
  const BatchesManifest manifest = test::made_up_manifest(dataset_manifest(), kSections);
  const std::vector<BatchTensor> tensors = batch_tensors(manifest.dataset);
  const auto rows_of = [&](const char* name, MadeUpBatch& batch) {
    std::size_t at = 0;
    while (tensors[at].name != name) ++at;
    return batch.rows[at].data();
  };
  struct Wrong {
    const char* what;
    std::function<void(MadeUpBatch&)> make;
  };
  const std::vector<Wrong> wrongs{
      {"edge 1 is out of order",
       [](MadeUpBatch& batch) {
         batch.edges[1] = {0, 0};
       }},
      {"is beyond its level", [](MadeUpBatch& batch) { batch.edges[1].source = 9; }},
      {"is beyond its level", [](MadeUpBatch& batch) { batch.edges.back().destination = 9; }},
      {"edge 2 of type 2, the dataset has 2",
       [&](MadeUpBatch& batch) {
         const EdgeData& data = manifest.dataset.edges.data;
         const std::uint16_t type = 2;
         std::memcpy(batch.records.data() + 2 * data.bytes() + data.type_offset(), &type, 2);
       }},
      {"1 labels that are none",
       [&](MadeUpBatch& batch) { *reinterpret_cast<std::int32_t*>(rows_of("labels", batch)) = 3; }},
      {"a seed of another split",
       [&](MadeUpBatch& batch) { *rows_of("splits", batch) = std::byte{2}; }},
      {"an id that the dataset has not",
       [&](MadeUpBatch& batch) { *reinterpret_cast<std::int64_t*>(rows_of("ids", batch)) = 60; }},
  };
  for (const Wrong& wrong : wrongs) {
    INFO(wrong.what);
    MemoryFileSystem files;
    std::vector<MadeUpBatch> batches = batches_of(manifest);
    batches[0].edges = {{0, 1}, {0, 4}, {1, 3}, {5, 8}, {8, 19}};
    batches[0].records.assign(5 * manifest.dataset.edges.data.bytes(), std::byte{0});
    wrong.make(batches[0]);
    write(files, batches, manifest);
    const std::vector<std::string> found = faults(files);
    REQUIRE(found.size() == 1);
    CHECK_THAT(found[0], Contains("batch 0: ") && Contains(wrong.what) &&
                             Contains("/x.batches/batches, offset 4096; sample the batches"));
    // Whoever trains on it needs that, whatever is to be verified.
    const BatchFile file = BatchFile::open(files, kPath, VerifyPolicy::kNever);
    CHECK_THROWS_WITH(read(file, 0), Contains(wrong.what));
  }
}

TEST_CASE("batch_file: other files, datasets and newer versions are no batches") {
  MemoryFileSystem files;
  write(files);
  files.create(path_of("notes.txt"))->close();
  CHECK(verify_batches(files, kPath).foreign_files == std::vector<std::string>{"notes.txt"});
  CHECK_THROWS_WITH(BatchFile::open(files, "/none", VerifyPolicy::kFirst),
                    "batches not found, /none; make them with ooc-prep sample");
  test::TinyDataset spec;
  test::write_tiny_dataset(files, spec);
  CHECK_FALSE(is_batches(files, "/tiny.ooc"));
  CHECK_FALSE(is_batches(files, "/tiny.ooc/ids"));
  CHECK_THROWS_WITH(BatchFile::open(files, "/tiny.ooc", VerifyPolicy::kFirst),
                    Contains("not the manifest of batches"));
  CHECK_THROWS_WITH(Dataset::open(files, kPath, VerifyPolicy::kFirst),
                    Contains("not a dataset's manifest"));
  // Of another sample of the same dataset.
  BatchesManifest manifest = test::made_up_manifest(dataset_manifest(), kSections);
  manifest.sampled.seed = 1;
  std::vector<MadeUpBatch> batches = batches_of(manifest);
  batches[4] = made_up_batch(manifest, Split::kTest, {3, 6, 60}, 6);
  MemoryFileSystem other;
  write(other, batches, manifest);
  files.create(path_of(kManifestFile))->write_at(0, read_file(other, path_of(kManifestFile)));
  CHECK_THROWS_WITH(BatchFile::open(files, kPath, VerifyPolicy::kFirst),
                    Contains("file does not belong to this manifest"));
}
