#include "storage/dataset_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "storage/errors.h"

namespace ooc {
namespace {

constexpr const char* kScratchDirectory = "scratch";
constexpr const char* kLockFile = ".ooc-lock";

constexpr std::int64_t kIdsAtOnce = 1 << 20;
// Far more than edges held in memory need.
constexpr std::int64_t kJoinMemory = std::int64_t{1} << 40;

}  // namespace

DatasetWriter::DatasetWriter(FileSystem& files, std::string path, bool force, std::int64_t vertices,
                             std::int64_t block_rows)
    : files_(files), path_(std::move(path)), directory_(path_ + ".partial") {
  if (files_.exists(path_)) {
    if (!force) {
      throw UsageError("output exists", path_, "use --force to replace it");
    }
    if (!files_.exists(join_path(path_, kManifestFile))) {
      throw UsageError("--force replaces datasets only, and this is none", path_,
                       "remove it yourself or choose another name");
    }
  }
  manifest_.edges.vertices = vertices;
  manifest_.edges.block_rows = block_rows;
  take_directory();
  files_.create_directories(join_path(directory_, kScratchDirectory));
}

// A directory with a lock file that nobody holds was left by a writer that died: it is emptied.
void DatasetWriter::take_directory() {
  const std::string lock_path = join_path(directory_, kLockFile);
  if (files_.exists(directory_) && !files_.exists(lock_path) &&
      (!files_.is_directory(directory_) || !files_.list(directory_).empty())) {
    throw UsageError("the name of the temporary directory is taken by something else", directory_,
                     "remove it yourself or choose another output");
  }
  files_.create_directories(directory_);
  lock_ = files_.lock(lock_path);
  if (!lock_) {
    throw UsageError("another process is writing this dataset", path_,
                     "wait for it or choose another output");
  }
  for (const std::string& name : files_.list(directory_)) {
    if (name != kLockFile) files_.remove_all(join_path(directory_, name));
  }
}

// The lock file last, so that what is left is known as ours wherever this is interrupted.
void DatasetWriter::remove_directory() {
  for (const std::string& name : files_.list(directory_)) {
    if (name != kLockFile) files_.remove_all(join_path(directory_, name));
  }
  files_.remove_all(directory_);
  lock_.reset();
}

DatasetWriter::~DatasetWriter() {
  if (committed_) return;
  try {
    features_.reset();
    multi_labels_.reset();
    original_ids_.reset();
    remove_directory();
  } catch (const Error&) {  // what failed first is on its way to the user already
  }
}

std::string DatasetWriter::scratch_path(const std::string& name) const {
  return join_path(join_path(directory_, kScratchDirectory), name);
}

EdgeCounts DatasetWriter::write_edges(std::span<const Edge> edges) {
  const EdgeLayout layout =
      choose_edge_layout(manifest_.edges.vertices, static_cast<std::int64_t>(edges.size()),
                         manifest_.edges.block_rows);
  EdgeSorter sorter(files_, scratch_path("edges"), {layout.vertices, layout.span_rows}, {});
  sorter.add(0, edges, {});
  sorter.finish();
  return write_edges(sorter, {.layout = layout, .transforms = {}, .memory_bytes = kJoinMemory}, {});
}

EdgeCounts DatasetWriter::write_edges(const EdgeSorter& edges, const JoinOptions& options,
                                      const Control& control) {
  EdgeOutput output(files_, directory_, options.layout);
  join_edges(
      edges, options, [&](JoinedUnit unit) { output.add(std::move(unit)); }, control);
  return output.finish(manifest_);
}

VertexTensorWriter& DatasetWriter::features(std::int64_t cols, DType dtype) {
  manifest_.feature_cols = cols;
  manifest_.feature_dtype = dtype;
  features_ = std::make_unique<VertexTensorWriter>(
      files_, join_path(directory_, "features"), dtype,
      TensorLayout{manifest_.edges.vertices, cols, manifest_.edges.block_rows});
  return *features_;
}

void DatasetWriter::finish_features() {
  manifest_.files["features"] = features_->finish();
  features_.reset();
}

VertexTensorWriter& DatasetWriter::multi_labels(std::int64_t classes) {
  manifest_.classes = classes;
  manifest_.labels = LabelKind::kMulti;
  multi_labels_ = std::make_unique<VertexTensorWriter>(
      files_, join_path(directory_, "labels"), DType::kU8,
      TensorLayout{manifest_.edges.vertices, classes, manifest_.edges.block_rows});
  return *multi_labels_;
}

void DatasetWriter::finish_multi_labels() {
  manifest_.files["labels"] = multi_labels_->finish();
  multi_labels_.reset();
}

template <class T>
void DatasetWriter::write_column(const std::string& name, std::span<const T> values) {
  OOC_CHECK(static_cast<std::int64_t>(values.size()) == manifest_.edges.vertices);
  VertexTensorWriter writer(files_, join_path(directory_, name), DTypeOf<T>::value,
                            {manifest_.edges.vertices, 1, manifest_.edges.block_rows});
  writer.append_rows(values.data(), manifest_.edges.vertices);
  manifest_.files[name] = writer.finish();
}

void DatasetWriter::write_labels(std::span<const std::int32_t> labels, std::int64_t classes) {
  manifest_.classes = classes;
  write_column("labels", labels);
}

void DatasetWriter::write_splits(std::span<const std::uint8_t> splits) {
  for (const std::uint8_t split : splits) {
    OOC_CHECK(split <= 3);
    if (split > 0) ++manifest_.split_counts[split - 1];
  }
  write_column("splits", splits);
}

void DatasetWriter::write_ids(std::span<const std::uint32_t> ids) {
  const std::int64_t vertices = manifest_.edges.vertices;
  OOC_CHECK(ids.empty() || static_cast<std::int64_t>(ids.size()) == vertices);
  VertexTensorWriter writer(files_, join_path(directory_, "ids"), DType::kI64,
                            {vertices, 1, manifest_.edges.block_rows});
  std::vector<std::int64_t> wide;
  for (std::int64_t begin = 0; begin < vertices; begin += kIdsAtOnce) {
    wide.resize(static_cast<std::size_t>(std::min(kIdsAtOnce, vertices - begin)));
    if (ids.empty()) {
      std::iota(wide.begin(), wide.end(), begin);
    } else {
      std::copy_n(ids.begin() + begin, wide.size(), wide.begin());
    }
    writer.append_rows(wide.data(), static_cast<std::int64_t>(wide.size()));
  }
  manifest_.files["ids"] = writer.finish();
}

VertexTensorWriter& DatasetWriter::original_ids() {
  manifest_.remapped = IdKind::kIntegers;
  original_ids_ = std::make_unique<VertexTensorWriter>(
      files_, join_path(directory_, "original_ids"), DType::kI64,
      TensorLayout{manifest_.edges.vertices, 1, manifest_.edges.block_rows});
  return *original_ids_;
}

void DatasetWriter::finish_original_ids() {
  manifest_.files["original_ids"] = original_ids_->finish();
  original_ids_.reset();
}

void DatasetWriter::commit() {
  OOC_CHECK(manifest_.files.contains("edges.in") && manifest_.files.contains("ids"));
  files_.remove_all(join_path(directory_, kScratchDirectory));
  const std::string text = manifest_to_text(manifest_);
  write_file_atomically(files_, join_path(directory_, kManifestFile),
                        std::as_bytes(std::span(text)));
  const std::string lock_path = join_path(directory_, kLockFile);
  files_.remove_all(lock_path);
  if (files_.exists(path_)) {
    files_.exchange(directory_, path_);  // readers see the old dataset or the new one, never none
    lock_ = files_.lock(lock_path);      // of the old one, until it is removed
    files_.sync_directory(parent_path(path_));
    committed_ = true;
    remove_directory();
  } else {
    files_.rename(directory_, path_);
    committed_ = true;
    files_.sync_directory(parent_path(path_));
  }
}

}  // namespace ooc
