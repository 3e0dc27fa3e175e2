#include "storage/dataset/dataset_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr const char* kScratchDirectory = "scratch";

constexpr std::int64_t kValuesAtOnce = 1 << 20;
constexpr std::size_t kNameBatchRows = 1 << 16;
constexpr std::size_t kNameBatchBytes = 1 << 20;
// Far more than edges held in memory need.
constexpr std::int64_t kJoinMemory = std::int64_t{1} << 40;

}  // namespace

DatasetWriter::DatasetWriter(FileSystem& files, std::string path, bool force, std::int64_t vertices,
                             std::int64_t block_rows)
    : files_(files),
      directory_(
          files, std::move(path), force,
          {[&](const std::string& old) { return files_.exists(join_path(old, kManifestFile)); },
           "--force replaces datasets only, and this is none"}) {
  manifest_.edges.vertices = vertices;
  manifest_.edges.block_rows = block_rows;
  files_.create_directories(directory_.file_path(kScratchDirectory));
}

std::string DatasetWriter::scratch_path(const std::string& name) const {
  return join_path(directory_.file_path(kScratchDirectory), name);
}

EdgeCounts DatasetWriter::write_edges(std::span<const Edge> edges, const Control& control) {
  const EdgeLayout layout =
      choose_edge_layout(manifest_.edges.vertices, static_cast<std::int64_t>(edges.size()),
                         manifest_.edges.block_rows);
  EdgeSorter sorter(files_, scratch_path("edges"), {layout.vertices, layout.span_rows}, {});
  sorter.add(0, edges, {});
  sorter.finish();
  return write_edges(sorter, {.layout = layout, .transforms = {}, .memory_bytes = kJoinMemory},
                     control);
}

EdgeCounts DatasetWriter::write_edges(const EdgeSorter& edges, const JoinOptions& options,
                                      const Control& control) {
  EdgeOutput output(files_, directory_.file_path(""), options.layout, control);
  join_edges(
      edges, options, [&](JoinedUnit unit) { output.add(std::move(unit)); }, control);
  return output.finish(manifest_);
}

std::unique_ptr<VertexTensorFile> DatasetWriter::open_degrees() const {
  return std::make_unique<VertexTensorFile>(
      files_, directory_.file_path("degrees"), VerifyPolicy::kNever, DType::kI32,
      manifest_.edges.vertices, manifest_.edges.block_rows, kDegreeColumns);
}

VertexTensorWriter& DatasetWriter::features(std::int64_t cols, DType dtype) {
  manifest_.feature_cols = cols;
  manifest_.feature_dtype = dtype;
  features_ = std::make_unique<VertexTensorWriter>(
      files_, directory_.file_path("features"), dtype,
      TensorLayout{manifest_.edges.vertices, cols, manifest_.edges.block_rows});
  return *features_;
}

void DatasetWriter::finish_features() {
  manifest_.files["features"] = features_->finish();
  features_.reset();
}

VertexTensorWriter& DatasetWriter::label_matrix(LabelKind kind, std::int64_t cols) {
  OOC_CHECK(kind != LabelKind::kSingle);
  manifest_.classes = cols;
  manifest_.labels = kind;
  label_matrix_ = std::make_unique<VertexTensorWriter>(
      files_, directory_.file_path("labels"), label_dtype(kind),
      TensorLayout{manifest_.edges.vertices, cols, manifest_.edges.block_rows});
  return *label_matrix_;
}

void DatasetWriter::finish_label_matrix() {
  manifest_.files["labels"] = label_matrix_->finish();
  label_matrix_.reset();
}

// Calls value(row) for the rows in order, and writes what it gives, some at a time.
template <class T, class Value>
void write_values(VertexTensorWriter& writer, std::int64_t rows, Value&& value) {
  std::vector<T> values;
  for (std::int64_t begin = 0; begin < rows; begin += kValuesAtOnce) {
    values.resize(static_cast<std::size_t>(std::min(kValuesAtOnce, rows - begin)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<T>(value(static_cast<std::size_t>(begin) + i));
    }
    writer.append_rows(values.data(), static_cast<std::int64_t>(values.size()));
  }
}

template <class T>
void DatasetWriter::write_column(const std::string& name, std::span<const T> values,
                                 std::span<const std::uint32_t> order) {
  OOC_CHECK(static_cast<std::int64_t>(values.size()) == manifest_.edges.vertices);
  VertexTensorWriter writer(files_, directory_.file_path(name), DTypeOf<T>::value,
                            {manifest_.edges.vertices, 1, manifest_.edges.block_rows});
  write_values<T>(writer, manifest_.edges.vertices,
                  [&](std::size_t row) { return values[order.empty() ? row : order[row]]; });
  manifest_.files[name] = writer.finish();
}

void DatasetWriter::write_labels(std::span<const std::int32_t> labels, std::int64_t classes,
                                 std::span<const std::uint32_t> order) {
  manifest_.classes = classes;
  write_column("labels", labels, order);
}

void DatasetWriter::write_splits(std::span<const std::uint8_t> splits,
                                 std::span<const std::uint32_t> order) {
  for (const std::uint8_t split : splits) {
    OOC_CHECK(split <= 3);
    if (split > 0) ++manifest_.split_counts[split - 1];
  }
  write_column("splits", splits, order);
}

void DatasetWriter::write_ids(std::span<const std::uint32_t> ids) {
  const std::int64_t vertices = manifest_.edges.vertices;
  OOC_CHECK(ids.empty() || static_cast<std::int64_t>(ids.size()) == vertices);
  VertexTensorWriter writer(files_, directory_.file_path("ids"), DType::kI64,
                            {vertices, 1, manifest_.edges.block_rows});
  write_values<std::int64_t>(writer, vertices,
                             [&](std::size_t row) { return ids.empty() ? row : ids[row]; });
  manifest_.files["ids"] = writer.finish();
}

VertexTensorWriter& DatasetWriter::original_ids() {
  manifest_.remapped = IdKind::kIntegers;
  original_ids_ = std::make_unique<VertexTensorWriter>(
      files_, directory_.file_path("original_ids"), DType::kI64,
      TensorLayout{manifest_.edges.vertices, 1, manifest_.edges.block_rows});
  return *original_ids_;
}

void DatasetWriter::finish_original_ids() {
  manifest_.files["original_ids"] = original_ids_->finish();
  original_ids_.reset();
}

void DatasetWriter::write_original_names(
    std::int64_t bytes, const std::function<std::string_view(std::int64_t)>& name) {
  const std::int64_t vertices = manifest_.edges.vertices, block_rows = manifest_.edges.block_rows;
  manifest_.remapped = IdKind::kStrings;
  manifest_.id_bytes = bytes;
  VertexTensorWriter ends(files_, directory_.file_path("original_id_ends"), DType::kI64,
                          {vertices, 1, block_rows});
  VertexTensorWriter texts(files_, directory_.file_path("original_id_bytes"), DType::kU8,
                           {bytes, 1, block_rows});
  std::vector<std::int64_t> batch;
  std::string text;
  std::int64_t end = 0;
  const auto flush = [&] {
    ends.append_rows(batch.data(), static_cast<std::int64_t>(batch.size()));
    texts.append_rows(text.data(), static_cast<std::int64_t>(text.size()));
    batch.clear();
    text.clear();
  };
  for (std::int64_t row = 0; row < vertices; ++row) {
    const std::string_view id = name(row);
    text += id;
    batch.push_back(end += static_cast<std::int64_t>(id.size()));
    if (text.size() >= kNameBatchBytes || batch.size() >= kNameBatchRows) flush();
  }
  flush();
  OOC_CHECK(end == bytes);
  manifest_.files["original_id_ends"] = ends.finish();
  manifest_.files["original_id_bytes"] = texts.finish();
}

void DatasetWriter::commit() {
  OOC_CHECK(manifest_.files.contains("edges.in") && manifest_.files.contains("ids"));
  files_.remove_all(directory_.file_path(kScratchDirectory));
  const std::string text = manifest_to_text(manifest_);
  write_file_atomically(files_, directory_.file_path(kManifestFile),
                        std::as_bytes(std::span(text)));
  directory_.commit();
}

}  // namespace ooc
