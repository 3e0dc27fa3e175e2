#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "storage/base/checksum.h"
#include "storage/batches/batches_verify.h"
#include "storage/format/edge_file.h"
#include "storage/format/manifest.h"
#include "storage/format/vertex_tensor.h"
#include "tests/fuzz/targets.h"
#include "tests/storage/batches/made_up_batch.h"
#include "tests/support/edge_files.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"
#include "tests/support/random_graph.h"

namespace ooc::fuzz {
namespace {

constexpr std::int64_t kMostRows = 1 << 20;  // that a target reads
constexpr const char* kBatchesPath = "/x.batches";

std::uint64_t checksum_of(const std::string& bytes, std::size_t begin, std::size_t count) {
  return checksum64(std::as_bytes(std::span(bytes)).subspan(begin, count));
}

template <class T>
T get(const std::string& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

template <class T>
void put(std::string& bytes, std::size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

// Makes every checksum of a chunk file right, as far as its parts lie inside it.
void repair(std::string& bytes) {
  if (bytes.size() < kChunkAlignment + sizeof(ChunkFileFooter)) return;
  constexpr std::size_t kHeaderFields = offsetof(ChunkFileHeader, checksum);
  const std::uint64_t header = checksum_of(bytes, 0, kHeaderFields);
  put(bytes, kHeaderFields, header);
  const std::size_t at = bytes.size() - sizeof(ChunkFileFooter);
  auto footer = get<ChunkFileFooter>(bytes, at);
  footer.header_checksum = header;
  footer.file_bytes = bytes.size();
  std::memcpy(footer.magic, kFooterMagic, sizeof(footer.magic));
  if (footer.index_offset <= at && footer.index_bytes <= at - footer.index_offset) {
    for (std::uint64_t i = 0; i + sizeof(ChunkIndexEntry) <= footer.index_bytes;
         i += sizeof(ChunkIndexEntry)) {
      auto entry = get<ChunkIndexEntry>(bytes, footer.index_offset + i);
      if (entry.offset > bytes.size() || entry.bytes > bytes.size() - entry.offset) continue;
      entry.checksum = checksum_of(bytes, entry.offset, entry.bytes);
      put(bytes, footer.index_offset + i, entry);
    }
    footer.index_checksum = checksum_of(bytes, footer.index_offset, footer.index_bytes);
  }
  put(bytes, at, footer);
  put(bytes, at + offsetof(ChunkFileFooter, checksum),
      checksum_of(bytes, at, offsetof(ChunkFileFooter, checksum)));
}

// The file "/f" and its header, as the dataset around it would know it.
struct ChunkInput {
  test::MemoryFileSystem files;
  ChunkFileHeader header = {};

  // False where the bytes are too few for a header.
  bool put_file(Bytes data) {
    if (data.size() < 1 + kChunkAlignment) return false;
    std::string bytes(reinterpret_cast<const char*>(data.data()) + 1, data.size() - 1);
    if (data[0] != std::byte{0}) repair(bytes);
    header = get<ChunkFileHeader>(bytes, 0);
    test::put_file(files, "/f", bytes);
    return true;
  }
};

std::string file_of(test::MemoryFileSystem& files, const std::string& path = "/f") {
  const std::vector<std::byte> bytes = read_file(files, path);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void verify_all(const ChunkFileReader& file) {
  for (std::uint64_t chunk = 0; chunk < file.shape().chunk_count; ++chunk) file.chunk(chunk);
  file.verify_gaps();
}

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void repair(Json& manifest) {
  manifest.erase("checksum");
  const std::string plain = text_of(manifest);
  manifest["checksum"] = fmt::format("{:016x}", checksum_of(plain, 0, plain.size()));
}

// The text of a manifest with checksums that are right; nothing where it is none.
std::optional<std::string> repaired_manifest(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  const auto brackets =
      std::count_if(text.begin(), text.end(), [](char c) { return c == '[' || c == '{'; });
  if (!json.is_object() || brackets > 1000) return {};  // dump() takes stack for every level
  if (json.contains("dataset") && json["dataset"].is_object()) repair(json["dataset"]);
  repair(json);
  return text_of(json);
}

BatchesManifest write_batches(FileSystem& files, bool carries) {
  test::TinyDataset spec;
  spec.feature_cols = 40;
  spec.edges = test::random_edges(60, 200, 3);
  spec.edge_weights = carries;
  spec.edge_types = carries ? 2 : 0;
  const BatchesManifest manifest =
      test::made_up_manifest(test::write_tiny_dataset(files, spec).manifest(),
                             {{Split::kTrain, 1, 4}, {Split::kTest, 1, 3}});
  BatchFileWriter writer(files, kBatchesPath, false);
  writer.begin(manifest);
  writer.add(test::made_up_batch(manifest, Split::kTrain, {4, 9, 20}, 1).view());
  writer.add(test::made_up_batch(manifest, Split::kTest, {3, 3, 60}, 2).view());
  return writer.commit();
}

}  // namespace

int fuzz_manifest(Bytes data) {
  const std::string text(reinterpret_cast<const char*>(data.data()), data.size());
  tolerate([&] { manifest_from_text(text, "m"); });
  const std::optional<std::string> repaired = repaired_manifest(text);
  if (!repaired) return 0;
  tolerate([&] {
    const Manifest manifest = manifest_from_text(*repaired, "m");
    OOC_CHECK(manifest.edges.chunk_count() >= 1);
    manifest_from_text(manifest_to_text(manifest), "m");
  });
  return 0;
}

int fuzz_vertex_tensor(Bytes data) {
  ChunkInput input;
  if (!input.put_file(data)) return 0;
  const ChunkFileHeader& header = input.header;
  const auto rows = static_cast<std::int64_t>(header.rows);
  const auto block_rows = static_cast<std::int64_t>(header.block_rows);
  if (header.dtype < 1 || header.dtype > 7 ||
      !is_possible({rows, 0, block_rows, kMaxBlockRows, 65536})) {
    return 0;
  }
  tolerate([&] {
    const VertexTensorFile tensor(input.files, "/f", VerifyPolicy::kFirst,
                                  static_cast<DType>(header.dtype), rows, block_rows, std::nullopt);
    verify_all(tensor.file());
    std::vector<std::byte> row(static_cast<std::size_t>(tensor.layout().cols) * 8);
    for (std::int64_t i = 0; i < std::min(rows, kMostRows); ++i) tensor.read_rows(i, 1, row.data());
  });
  return 0;
}

int fuzz_edge_file(Bytes data) {
  ChunkInput input;
  if (!input.put_file(data)) return 0;
  const ChunkFileHeader& header = input.header;
  const EdgeLayout layout{
      static_cast<std::int64_t>(header.rows),
      static_cast<std::int64_t>(header.cols),
      static_cast<std::int64_t>(header.block_rows),
      static_cast<std::int64_t>(header.span_rows),
      static_cast<std::int64_t>(header.blocks_per_chunk),
      {(header.edge_data & kEdgeWeights) != 0, (header.edge_data & kEdgeTypes) != 0,
       static_cast<std::int64_t>(header.slice_width)}};
  if (!is_possible(layout)) return 0;  // the manifest refuses it before any file is opened
  std::int64_t sum = 0;
  tolerate([&] {
    const EdgeFile edges(input.files, "/f", VerifyPolicy::kFirst, layout);
    for (std::int64_t chunk = 0; chunk < layout.chunk_count(); ++chunk) {
      for (const PanelTile& tile :
           edges.tiles(chunk / layout.panel_count(), chunk % layout.panel_count())) {
        for_each_edge(tile.tile, [&](std::uint16_t row, std::uint16_t source) {
          OOC_CHECK(row < layout.block_rows && source < layout.span_rows);
          sum += row + source;
        });
        const std::uint32_t last = tile.tile.edge_count - 1;
        if (tile.tile.edge_count == 0) continue;
        if (layout.data.types) sum += tile.tile.types[last];
        if (layout.data.weights) sum += std::isnan(tile.tile.weights[last]) ? 1 : 0;
        if (layout.data.feature_cols > 0) {
          const std::int64_t end = (last + std::int64_t{1}) * layout.data.feature_cols;
          sum += std::isnan(tile.tile.features[end - 1]) ? 1 : 0;
        }
      }
    }
    verify_all(edges.file());
  });
  return sum < 0 ? -1 : 0;
}

int fuzz_batches_manifest(Bytes data) {
  const std::string text(reinterpret_cast<const char*>(data.data()), data.size());
  tolerate([&] { batches_manifest_from_text(text, "m"); });
  const std::optional<std::string> repaired = repaired_manifest(text);
  if (!repaired) return 0;
  tolerate([&] {
    const BatchesManifest manifest = batches_manifest_from_text(*repaired, "m");
    OOC_CHECK(manifest.batches() >= 1);
    manifest.layout().bytes(manifest.most_rows, manifest.most_edges);
    batches_manifest_from_text(to_text(manifest), "m");
  });
  return 0;
}

int fuzz_batches(Bytes data) {
  ChunkInput input;
  if (!input.put_file(data)) return 0;
  test::MemoryFileSystem& files = input.files;
  BatchesManifest manifest = write_batches(files, input.header.edge_data != 0);
  std::int64_t sum = 0;
  tolerate([&] {
    manifest.file =
        ChunkFileReader(files, "/f", ChunkFileKind::kBatches, VerifyPolicy::kFirst).info();
    test::put_file(files, join_path(kBatchesPath, kManifestFile), to_text(manifest));
    test::put_file(files, join_path(kBatchesPath, kBatchesFile), file_of(files));
    const BatchFile file = BatchFile::open(files, kBatchesPath, VerifyPolicy::kFirst);
    for (std::int64_t i = 0; i < file.batches(); ++i) {
      const BatchView batch = file.view(i, file.file().chunk(static_cast<std::uint64_t>(i)));
      for (const BatchEdge& edge : batch.edges) {
        OOC_CHECK(edge.destination < batch.level_rows.back());
        OOC_CHECK(edge.source < batch.level_rows.back());
      }
      for (const std::byte record : batch.records) sum += static_cast<int>(record);
      for (std::size_t t = 0; t < batch.rows.size(); ++t) {
        const BatchTensor& tensor = file.layout().tensors()[t];
        const std::int64_t rows = BatchLayout::rows_of(tensor, batch.level_rows);
        std::int64_t bytes = 0;
        for (std::int64_t slice = 0; slice * kSliceWidth < tensor.cols; ++slice) {
          bytes += BatchLayout::slice_bytes(tensor, rows, slice);
        }
        for (std::int64_t at = 0; at < bytes; ++at) sum += static_cast<int>(batch.rows[t][at]);
      }
    }
    verify_all(file.file());
  });
  return sum < 0 ? -1 : 0;
}

std::vector<std::string> manifest_seeds() {
  Manifest manifest;
  manifest.edges = choose_edge_layout(100, 500, 16);
  manifest.feature_cols = 4;
  manifest.classes = 3;
  manifest.split_counts[0] = 5;
  manifest.files["edges.in"] = {4096, 77};
  manifest.transforms = R"({"undirected": true})";
  manifest.findings = R"({"vertices": 100, "warnings": ["a", "b"]})";
  Manifest named = manifest;
  named.remapped = IdKind::kStrings;
  named.id_bytes = 700;
  return {manifest_to_text(manifest), manifest_to_text(named)};
}

std::vector<std::string> vertex_tensor_seeds() {
  std::vector<std::string> seeds;
  for (const std::int64_t cols : {3, 40}) {
    test::MemoryFileSystem files;
    const std::vector<float> values(static_cast<std::size_t>(20 * cols), 1.5f);
    VertexTensorWriter writer(files, "/f", DType::kF32, {20, cols, 16});
    writer.append_rows(values.data(), 20);
    writer.finish();
    for (const char first : {'\0', '\1'})
      seeds.push_back(std::string(1, first).append(file_of(files)));
  }
  return seeds;
}

std::vector<std::string> edge_file_seeds() {
  std::vector<std::string> seeds;
  for (const std::int64_t count : {3, 400}) {
    test::MemoryFileSystem files;
    std::vector<Edge> edges = test::random_edges(40, count, 3);
    EdgeLayout layout = choose_edge_layout(40, count, 16);
    layout.panel_blocks = 2;
    test::write_edge_file(files, "/f", layout, edges);
    for (const char first : {'\0', '\1'})
      seeds.push_back(std::string(1, first).append(file_of(files)));
  }
  return seeds;
}

std::vector<std::string> batches_manifest_seeds() {
  std::vector<std::string> seeds;
  for (const bool carries : {false, true}) {
    test::MemoryFileSystem files;
    seeds.push_back(to_text(write_batches(files, carries)));
  }
  return seeds;
}

std::vector<std::string> batches_seeds() {
  std::vector<std::string> seeds;
  for (const bool carries : {false, true}) {
    test::MemoryFileSystem files;
    write_batches(files, carries);
    for (const char first : {'\0', '\1'}) {
      seeds.push_back(
          std::string(1, first).append(file_of(files, join_path(kBatchesPath, kBatchesFile))));
    }
  }
  return seeds;
}

}  // namespace ooc::fuzz
