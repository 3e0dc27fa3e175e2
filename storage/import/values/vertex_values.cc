#include "storage/import/values/vertex_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/base/errors.h"
#include "storage/import/rows/id_column.h"
#include "storage/import/rows/row_placer.h"

namespace ooc {
namespace {

std::span<const float> floats_of(std::span<const std::byte> rows) {
  return {reinterpret_cast<const float*>(rows.data()), rows.size() / sizeof(float)};
}

}  // namespace

VertexValues::VertexValues(LabelTable labels, LabelChoice kind, SplitTables splits)
    : table_(std::move(labels.table)),
      label_ids_(std::move(labels.ids)),
      class_names_(std::move(labels.names)),
      choice_(kind),
      split_tables_(std::move(splits)) {
  if (!class_names_.empty() && choice_ != LabelChoice::kAuto && choice_ != LabelChoice::kClasses) {
    throw UsageError(fmt::format("--label-kind {}, but there are names of classes",
                                 kLabelChoiceNames[static_cast<std::size_t>(choice_)]),
                     "command line", "leave it out");
  }
  if (table_ || choice_ == LabelChoice::kAuto) return;
  throw UsageError("--label-kind, but there are no labels", "command line",
                   "leave it out, or give --labels FILE");
}

std::int64_t VertexValues::row_tables() const {
  const auto masks =
      std::count_if(split_tables_.begin(), split_tables_.end(),
                    [](const auto& table) { return table != nullptr && is_mask(*table); });
  return masks + (table_ ? 1 : 0);
}

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
  if (table_) {
    DetectedLabels detected{choice_};
    if (!class_names_.empty()) {
      detected.kind = LabelChoice::kClasses;
    } else if (choice_ == LabelChoice::kAuto) {
      detected = detect_labels(*table_, control);
    }
    if (detected.one_hot) {
      findings.warnings.push_back(
          fmt::format("every labelled row of {} has exactly one 1: if these are classes, "
                      "give --label-kind one-hot",
                      table_->name()));
    }
    read_labels_as(detected.kind, findings, control);
    findings.labels = kind_;
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

void VertexValues::read_labels_as(LabelChoice kind, Findings& findings, const Control& control) {
  if (kind == LabelChoice::kMulti || kind == LabelChoice::kValues) {
    kind_ = kind == LabelChoice::kMulti ? LabelKind::kMulti : LabelKind::kValues;
    classes_ = table_->cols();
    IdColumn ids;
    read_label_matrix(*table_, kind_, control, [&](auto rows, auto labelled) {
      if (kind_ == LabelKind::kValues) ids.look(floats_of(rows), classes_);
      for (const std::int64_t count : labelled) {
        labels_.push_back(count > 0 ? 0 : -1);
        if (count > 0) findings.missing_labels += classes_ - count;
      }
    });
    const std::string warning = id_column_warning(*table_, "labels", ids);
    if (!warning.empty()) findings.warnings.push_back(warning);
    return;
  }
  const bool one_hot = kind == LabelChoice::kOneHot;
  labels_ = one_hot ? read_one_hot(*table_, control) : read_labels(*table_, control);
  classes_ = one_hot ? table_->cols()
                     : *std::max_element(labels_.begin(), labels_.end()) + std::int64_t{1};
  if (!class_names_.empty()) name_classes();
  count_classes(findings);
}

void VertexValues::name_classes() {
  const std::int64_t names = std::ssize(class_names_);
  if (classes_ > names) {
    throw DataError(fmt::format("class {}, but {} names of classes", classes_ - 1, names),
                    table_->name(), "name them all, one in a line");
  }
  classes_ = names;
}

void VertexValues::count_classes(Findings& findings) const {
  findings.class_counts.assign(static_cast<std::size_t>(classes_), 0);
  for (const std::int32_t label : labels_) {
    if (label >= 0) ++findings.class_counts[static_cast<std::size_t>(label)];
  }
  findings.class_names = class_names_;
  warn_of_classes(findings);
}

void VertexValues::write(FileSystem& files, DatasetWriter& writer,
                         std::span<const VertexIndex> order, std::span<const VertexIndex> new_ids,
                         std::int64_t memory_bytes, const Control& control) {
  if (kind_ != LabelKind::kSingle) {
    write_matrix(files, writer, new_ids, memory_bytes, control);
  } else if (classes_ > 0) {
    writer.write_labels(labels_, classes_, order);
    writer.manifest().class_names = class_names_;
  }
  if (!splits_.empty()) writer.write_splits(splits_, order);
}

void VertexValues::write_matrix(FileSystem& files, DatasetWriter& writer,
                                std::span<const VertexIndex> new_ids, std::int64_t memory_bytes,
                                const Control& control) {
  const auto vertices = static_cast<std::int64_t>(labels_.size());
  const std::size_t row_bytes =
      static_cast<std::size_t>(classes_) * dtype_bytes(label_dtype(kind_));
  RowPlacer placer(files, writer.label_matrix(kind_, classes_), new_ids,
                   {writer.scratch_path("labels"), vertices, row_bytes, memory_bytes});
  table_->rewind();
  std::size_t row = 0;
  read_label_matrix(*table_, kind_, control,
                    [&](std::span<const std::byte> rows, std::span<const std::int32_t> labelled) {
                      placer.add(rows);
                      for (const std::int64_t count : labelled) {
                        if (is_trained_on(row++)) {
                          writer.manifest().missing_train_labels += classes_ - count;
                        }
                      }
                    });
  placer.finish("writing labels", control);
  writer.finish_label_matrix();
}

bool VertexValues::is_trained_on(std::size_t vertex) const {
  return !splits_.empty() && splits_[vertex] == static_cast<std::uint8_t>(Split::kTrain);
}

}  // namespace ooc
