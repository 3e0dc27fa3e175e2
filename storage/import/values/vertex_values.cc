#include "storage/import/values/vertex_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/base/errors.h"
#include "storage/import/rows/row_placer.h"
#include "storage/import/values/multi_labels_input.h"

namespace ooc {

VertexValues::VertexValues(std::unique_ptr<TableReader> labels, SplitTables splits)
    : table_(std::move(labels)), split_tables_(std::move(splits)) {}

void VertexValues::adapt(const Adapt& adapt) {
  if (table_) adapt(table_, "labels", true);
  for (std::size_t i = 0; i < split_tables_.size(); ++i) {
    if (split_tables_[i]) {
      adapt(split_tables_[i], fmt::format("split{}", i), is_mask(*split_tables_[i]));
    }
  }
}

void VertexValues::read(std::int64_t vertices, const SplitChoice& choice, const ListedIds& ids,
                        Findings& findings, const Control& control) {
  if (is_multi()) {
    const MultiLabels multi = read_multi_labels(*table_, control, [](auto) {});
    classes_ = multi.classes;
    labels_.resize(multi.labelled.size());
    std::transform(multi.labelled.begin(), multi.labelled.end(), labels_.begin(),
                   [](std::uint8_t labelled) { return labelled == 1 ? 0 : -1; });
  } else if (table_) {
    labels_ = read_labels(*table_, control);
    classes_ = *std::max_element(labels_.begin(), labels_.end()) + std::int64_t{1};
    warn_of_empty_classes(findings);
  }
  findings.classes = classes_;
  findings.unlabelled = table_ ? std::count(labels_.begin(), labels_.end(), -1) : vertices;
  const bool has_splits = std::any_of(split_tables_.begin(), split_tables_.end(),
                                      [](const auto& table) { return table != nullptr; });
  if (!has_splits && !choice.shares) return;
  splits_ = choice.shares ? random_split(labels_, *choice.shares, choice.seed)
                          : read_splits(split_tables_, vertices, labels_, ids, control);
  for (const std::uint8_t split : splits_) {
    if (split > 0) ++findings.split_counts[split - 1];
  }
}

void VertexValues::warn_of_empty_classes(Findings& findings) const {
  std::vector<bool> used(static_cast<std::size_t>(classes_), false);
  for (const std::int32_t label : labels_) {
    if (label >= 0) used[static_cast<std::size_t>(label)] = true;
  }
  const auto empty = std::count(used.begin(), used.end(), false);
  if (empty == 0) return;
  findings.warnings.push_back(fmt::format("{} of the {} classes have no vertex", empty, classes_));
}

void VertexValues::write(FileSystem& files, DatasetWriter& writer,
                         std::span<const VertexIndex> order, std::span<const VertexIndex> new_ids,
                         std::int64_t memory_bytes, const Control& control) {
  if (is_multi()) {
    write_multi(files, writer, new_ids, memory_bytes, control);
  } else if (classes_ > 0) {
    writer.write_labels(labels_, classes_, order);
  }
  if (!splits_.empty()) writer.write_splits(splits_, order);
}

void VertexValues::write_multi(FileSystem& files, DatasetWriter& writer,
                               std::span<const VertexIndex> new_ids, std::int64_t memory_bytes,
                               const Control& control) {
  const auto vertices = static_cast<std::int64_t>(labels_.size());
  RowPlacer placer(
      files, writer.multi_labels(classes_), new_ids,
      {writer.scratch_path("labels"), vertices, static_cast<std::size_t>(classes_), memory_bytes});
  table_->rewind();
  read_multi_labels(*table_, control,
                    [&](std::span<const std::uint8_t> rows) { placer.add(std::as_bytes(rows)); });
  placer.finish("writing labels", control);
  writer.finish_multi_labels();
}

}  // namespace ooc
