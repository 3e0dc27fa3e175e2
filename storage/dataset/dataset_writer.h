// Writes a dataset: under a temporary name beside it until commit(). One thread drives it; the work
// runs on all of TBB's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/control.h"
#include "storage/dataset/dataset.h"
#include "storage/dataset/edge_output.h"
#include "storage/io/file.h"
#include "storage/io/output_directory.h"

namespace ooc {

class DatasetWriter {
 public:
  // UsageError if `path` exists and `force` is not set, if it is set and `path` is no dataset, and
  // as OutputDirectory says. Destroyed without commit(), it removes what was written.
  // `vertices` may be 0 until set_vertices().
  DatasetWriter(FileSystem& files, std::string path, bool force, std::int64_t vertices,
                std::int64_t block_rows);

  void set_vertices(std::int64_t vertices) { manifest_.edges.vertices = vertices; }
  // Edges whose ids are in the dataset's own order, in memory, as they are.
  EdgeCounts write_edges(std::span<const Edge> edges, const Control& control = {});
  // Edges that were sorted, transformed as options.transforms says. Writes edges.in, edges.out
  // unless the graph is symmetric, and degrees.
  EdgeCounts write_edges(const EdgeSorter& edges, const JoinOptions& options,
                         const Control& control);
  // The degrees that write_edges() wrote.
  std::unique_ptr<VertexTensorFile> open_degrees() const;
  // Features row by row: writer.append_rows(...) until all are there, then finish_features().
  VertexTensorWriter& features(std::int64_t cols, DType dtype = DType::kF32);
  void finish_features();
  // Labels in a matrix, likewise: LabelKind::kMulti, of 0, 1 and kUnlabelled, or kValues. Where the
  // training vertices lack some, manifest() is to say how many.
  VertexTensorWriter& label_matrix(LabelKind kind, std::int64_t cols);
  void finish_label_matrix();
  // One element a vertex, in the dataset's order. Labels are below `classes`; −1: unlabelled.
  // `order`: where each row is found in `labels`; empty: in its place. So for splits.
  void write_labels(std::span<const std::int32_t> labels, std::int64_t classes,
                    std::span<const std::uint32_t> order = {});
  void write_splits(std::span<const std::uint8_t> splits,
                    std::span<const std::uint32_t> order = {});
  // The original id of each row; empty: as the rows are.
  void write_ids(std::span<const std::uint32_t> ids);

  // What the input calls each vertex, row by row, where ids are remapped; then
  // finish_original_ids().
  VertexTensorWriter& original_ids();
  void finish_original_ids();
  // The same where they are strings, of `bytes` bytes together: `name` gives that of a row.
  void write_original_names(std::int64_t bytes,
                            const std::function<std::string_view(std::int64_t)>& name);

  // The parts of the manifest that describe how the dataset came about.
  Manifest& manifest() { return manifest_; }
  // A file for temporary use inside the temporary directory; removed before commit.
  std::string scratch_path(const std::string& name) const;
  // Makes the dataset appear under its name in one step. edges and ids must be there.
  void commit();

 private:
  template <class T>
  void write_column(const std::string& name, std::span<const T> values,
                    std::span<const std::uint32_t> order);

  FileSystem& files_;
  OutputDirectory directory_;
  Manifest manifest_;
  std::unique_ptr<VertexTensorWriter> features_, label_matrix_, original_ids_;
};

}  // namespace ooc
