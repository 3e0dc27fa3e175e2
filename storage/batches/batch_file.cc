#include "storage/batches/batch_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "storage/base/errors.h"
#include "storage/batches/batch_check.h"

namespace ooc {
namespace {

std::string text_of(FileSystem& files, const std::string& path) {
  const std::vector<std::byte> bytes = read_file(files, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ChunkFileShape shape_of(const BatchesManifest& manifest) {
  const EdgeData& data = manifest.dataset.edges.data;
  ChunkFileShape shape;
  shape.kind = ChunkFileKind::kBatches;
  shape.edge_data = (data.weights ? kEdgeWeights : 0) | (data.types ? kEdgeTypes : 0);
  shape.rows = static_cast<std::uint64_t>(manifest.dataset.edges.vertices);
  shape.cols = static_cast<std::uint64_t>(manifest.edges);
  shape.slice_width = static_cast<std::uint64_t>(data.feature_cols);
  shape.chunk_count = static_cast<std::uint64_t>(manifest.batches());
  return shape;
}

// Those that are labels: whoever reads a batch finds the others.
void add_labels(const BatchTensor& labels, const std::byte* rows, std::int64_t seeds,
                LabelKind kind, std::vector<LabelCounts>& counts) {
  if (kind == LabelKind::kMulti) {
    for_each_element<std::uint8_t>(labels, rows, seeds, [&](std::int64_t col, std::uint8_t label) {
      if (label <= 1) ++counts[static_cast<std::size_t>(col)][label];
    });
    return;
  }
  std::int64_t labelled = 0;
  for_each_element<std::int32_t>(labels, rows, seeds, [&](std::int64_t, std::int32_t label) {
    if (label < 0 || label >= std::ssize(counts)) return;
    LabelCounts& of_class = counts[static_cast<std::size_t>(label)];
    ++of_class[1];
    --of_class[0];
    ++labelled;
  });
  for (LabelCounts& of_class : counts) of_class[0] += labelled;
}

}  // namespace

bool is_batches(FileSystem& files, const std::string& path) {
  const std::string manifest = join_path(path, kManifestFile);
  if (!files.exists(path) || !files.is_directory(path) || !files.exists(manifest)) return false;
  const auto json = nlohmann::ordered_json::parse(text_of(files, manifest), nullptr, false);
  return json.is_object() && json.value("format", nlohmann::ordered_json()) == kBatchesFormat;
}

BatchFileWriter::BatchFileWriter(FileSystem& files, std::string path, bool force)
    : files_(files),
      directory_(files, std::move(path), force,
                 {[&](const std::string& old) { return is_batches(files_, old); },
                  "--force replaces batches only, and these are none"}) {
  files_.create_directories(scratch_path());
}

void BatchFileWriter::begin(BatchesManifest manifest) {
  manifest_ = std::move(manifest);
  layout_.emplace(manifest_.layout());
  manifest_.most_rows.assign(static_cast<std::size_t>(manifest_.hops()) + 1, 0);
  const LabelKind labels = manifest_.dataset.labels;
  if (labels != LabelKind::kValues) {
    manifest_.train_labels.assign(static_cast<std::size_t>(manifest_.dataset.classes), {0, 0});
  }
  writer_ = std::make_unique<ChunkFileWriter>(files_, directory_.file_path(kBatchesFile),
                                              shape_of(manifest_));
}

// Of the first epoch's seeds: those of others are the same.
void BatchFileWriter::count_labels(const BatchView& batch) {
  const std::vector<std::size_t> training = manifest_.sections_of(Split::kTrain);
  if (training.empty() || manifest_.section_of(added_) != training.front()) return;
  if (manifest_.train_labels.empty()) return;
  const std::vector<BatchTensor>& tensors = layout_->tensors();
  const auto labels = std::find_if(tensors.begin(), tensors.end(), [](const BatchTensor& tensor) {
    return tensor.name == "labels";
  });
  if (labels == tensors.end()) return;
  add_labels(*labels, batch.rows[static_cast<std::size_t>(labels - tensors.begin())],
             batch.level_rows.front(), manifest_.dataset.labels, manifest_.train_labels);
}

void BatchFileWriter::add(const BatchView& batch) {
  count_labels(batch);
  std::vector<std::uint64_t> header;
  writer_->write_next(layout_->parts(batch, header),
                      static_cast<std::uint64_t>(batch.level_rows.back()));
  const auto edges = static_cast<std::int64_t>(batch.edges.size());
  manifest_.vertices += batch.level_rows.back();
  manifest_.edges += edges;
  manifest_.most_edges = std::max(manifest_.most_edges, edges);
  for (std::size_t level = 0; level < batch.level_rows.size(); ++level) {
    manifest_.most_rows[level] = std::max(manifest_.most_rows[level], batch.level_rows[level]);
  }
  ++added_;
}

BatchesManifest BatchFileWriter::commit() {
  OOC_CHECK(added_ == manifest_.batches());
  manifest_.file = writer_->finish(static_cast<std::uint64_t>(manifest_.edges));
  files_.remove_all(scratch_path());
  const std::string text = to_text(manifest_);
  write_file_atomically(files_, directory_.file_path(kManifestFile),
                        std::as_bytes(std::span(text)));
  directory_.commit();
  return batches_manifest_from_text(text, directory_.path());
}

BatchFile::BatchFile(std::string path, BatchesManifest manifest,
                     std::unique_ptr<ChunkFileReader> file)
    : path_(std::move(path)),
      manifest_(std::move(manifest)),
      layout_(manifest_.layout()),
      file_(std::move(file)) {}

BatchFile BatchFile::open(FileSystem& files, const std::string& path, VerifyPolicy verify) {
  if (!files.exists(path)) {
    throw DataError("batches not found", path, "make them with ooc-prep sample");
  }
  const std::string manifest_path = join_path(path, kManifestFile);
  BatchesManifest manifest =
      batches_manifest_from_text(text_of(files, manifest_path), manifest_path);
  auto file = std::make_unique<ChunkFileReader>(files, join_path(path, kBatchesFile),
                                                ChunkFileKind::kBatches, verify);
  if (file->info() != manifest.file || file->shape() != shape_of(manifest)) {
    throw DataError("file does not belong to this manifest", file->path(), kSampleAgain);
  }
  for (std::uint64_t chunk = 0; chunk < file->shape().chunk_count; ++chunk) {
    if (file->entry(chunk).bytes > 0) continue;
    throw DataError(fmt::format("batch {} is empty", chunk), file->path(), kSampleAgain);
  }
  return {path, std::move(manifest), std::move(file)};
}

std::int64_t BatchFile::largest_chunk() const {
  std::uint64_t most = 0;
  for (std::uint64_t chunk = 0; chunk < file_->shape().chunk_count; ++chunk) {
    most = std::max(most, file_->entry(chunk).bytes);
  }
  return static_cast<std::int64_t>(most);
}

BatchView BatchFile::view(std::int64_t batch, std::span<const std::byte> chunk) const {
  const auto index = static_cast<std::uint64_t>(batch);
  file_->verify(index, chunk);
  const auto refuse = [&](const std::string& what) {
    throw DataError(fmt::format("batch {}: {}", batch, what),
                    fmt::format("{}, offset {}", file_->path(), file_->entry(index).offset),
                    kSampleAgain);
  };
  std::optional<BatchView> view = layout_.view(chunk);
  if (!view) refuse("its length is not what its counts say");
  const std::string wrong =
      check_batch(*view, manifest_, manifest_.sections[manifest_.section_of(batch)].split);
  if (!wrong.empty()) refuse(wrong);
  return *std::move(view);
}

}  // namespace ooc
