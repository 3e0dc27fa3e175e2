#include "storage/dataset_writer.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "storage/errors.h"

namespace ooc {
namespace {

constexpr const char* kScratchDirectory = "scratch";
constexpr const char* kLockFile = ".ooc-lock";

void swap_ends(std::vector<Edge>& edges) {
  tbb::parallel_for(std::size_t{0}, edges.size(),
                    [&](std::size_t i) { std::swap(edges[i].source, edges[i].destination); });
}

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
    remove_directory();
  } catch (const Error&) {  // what failed first is on its way to the user already
  }
}

std::string DatasetWriter::scratch_path(const std::string& name) const {
  return join_path(join_path(directory_, kScratchDirectory), name);
}

void DatasetWriter::write_degrees(const std::vector<Edge>& edges) {
  const auto vertices = static_cast<std::size_t>(manifest_.edges.vertices);
  std::vector<std::int32_t> degrees(vertices * kDegreeColumns, 0);
  const auto count = [&](VertexId vertex, std::int64_t column) {
    std::int32_t& degree = degrees[static_cast<std::size_t>(vertex * kDegreeColumns + column)];
    if (degree == std::numeric_limits<std::int32_t>::max()) {
      throw DataError("a vertex with more than 2^31 - 1 edges", fmt::format("vertex {}", vertex),
                      "merge duplicate edges with --coalesce first");
    }
    ++degree;
  };
  for (const Edge& edge : edges) {
    if (edge.source == edge.destination) {
      count(edge.source, kSelfLoops);
    } else {
      count(edge.source, kOutDegree);
      count(edge.destination, kInDegree);
    }
  }
  VertexTensorWriter writer(files_, join_path(directory_, "degrees"), DType::kI32,
                            {manifest_.edges.vertices, kDegreeColumns, manifest_.edges.block_rows});
  writer.append_rows(degrees.data(), manifest_.edges.vertices);
  manifest_.files["degrees"] = writer.finish();
}

void DatasetWriter::write_direction(const std::string& name, const std::vector<Edge>& edges,
                                    const Control& control) {
  constexpr std::size_t kEdgesAStep = 1 << 16;
  EdgeFileWriter writer(files_, join_path(directory_, name), manifest_.edges);
  for (std::size_t begin = 0; begin < edges.size(); begin += kEdgesAStep) {
    control.step("writing " + name, static_cast<double>(begin), static_cast<double>(edges.size()));
    const std::size_t end = std::min(begin + kEdgesAStep, edges.size());
    for (std::size_t i = begin; i < end; ++i) writer.add(edges[i]);
  }
  manifest_.files[name] = writer.finish();
}

void DatasetWriter::write_edges(std::vector<Edge>& edges, const Control& control) {
  manifest_.edges =
      choose_edge_layout(manifest_.edges.vertices, static_cast<std::int64_t>(edges.size()),
                         manifest_.edges.block_rows);
  write_degrees(edges);
  const EdgeFileOrder order(manifest_.edges.span_rows);
  control.step("sorting edges", 0, 2);
  tbb::parallel_sort(edges.begin(), edges.end(), order);
  control.step("sorting edges", 1, 2);
  std::vector<Edge> reversed(edges);
  swap_ends(reversed);
  tbb::parallel_sort(reversed.begin(), reversed.end(), order);
  manifest_.symmetric = edges == reversed;
  write_direction("edges.in", edges, control);
  if (!manifest_.symmetric) write_direction("edges.out", reversed, control);
}

VertexTensorWriter& DatasetWriter::features(std::int64_t cols) {
  manifest_.feature_cols = cols;
  features_ = std::make_unique<VertexTensorWriter>(
      files_, join_path(directory_, "features"), DType::kF32,
      TensorLayout{manifest_.edges.vertices, cols, manifest_.edges.block_rows});
  return *features_;
}

void DatasetWriter::finish_features() {
  manifest_.files["features"] = features_->finish();
  features_.reset();
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

void DatasetWriter::write_ids(std::span<const std::int64_t> ids) { write_column("ids", ids); }

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
