// The labels and splits of an import: read and checked in the input's order, written in the
// dataset's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/base/control.h"
#include "storage/dataset/dataset_writer.h"
#include "storage/import/rows/vertex_order.h"
#include "storage/import/values/class_names.h"
#include "storage/import/values/findings.h"
#include "storage/import/values/label_matrix_input.h"
#include "storage/import/values/labels_input.h"
#include "storage/import/values/random_split.h"

namespace ooc {

struct SplitChoice {
  std::optional<SplitShares> shares;  // made here, not read
  std::uint64_t seed = 0;
};

// Memory: 5 bytes a vertex. One thread.
class VertexValues {
 public:
  // Either may be without tables. UsageError where a kind is asked for and there are no labels.
  VertexValues(LabelTable labels, LabelChoice kind, SplitTables splits);
  TableReader* label_table() const { return table_.get(); }
  // How many tables have vertices' rows: labels, masks.
  std::int64_t row_tables() const;
  // What the names of classes take.
  std::int64_t names_bytes() const { return label_ids_ ? label_ids_->memory_bytes() : 0; }
  // Lets `adapt` replace tables: labels and masks, whose rows are vertices', and lists. `part`
  // names each for scratch files.
  using Adapt =
      std::function<void(std::unique_ptr<TableReader>& table, const std::string& part, bool rows)>;
  void adapt(const Adapt& adapt);

  // Reads everything, and says in `findings` what was there. `ids`: of the splits' lists.
  void read(std::int64_t vertices, const SplitChoice& choice, const ListedIds& ids,
            Findings& findings, const Control& control);
  // `order` and its inverse `new_ids` are empty for the natural one.
  void write(FileSystem& files, DatasetWriter& writer, std::span<const VertexIndex> order,
             std::span<const VertexIndex> new_ids, std::int64_t memory_bytes,
             const Control& control);

 private:
  void read_labels_as(LabelChoice kind, Findings& findings, const Control& control);
  void name_classes();
  void count_classes(Findings& findings) const;
  bool is_trained_on(std::size_t vertex) const;
  void write_matrix(FileSystem& files, DatasetWriter& writer, std::span<const VertexIndex> new_ids,
                    std::int64_t memory_bytes, const Control& control);

  std::unique_ptr<TableReader> table_;
  std::unique_ptr<StringIds> label_ids_;  // where the table holds names
  std::vector<std::string> class_names_;  // empty: numbers
  LabelChoice choice_;
  SplitTables split_tables_;
  // -1: unlabelled; where labels are a matrix, which is read again to be written, 0 for the others.
  std::vector<std::int32_t> labels_;
  LabelKind kind_ = LabelKind::kSingle;
  std::int64_t classes_ = 0;  // or targets
  std::vector<std::uint8_t> splits_;
};

}  // namespace ooc
