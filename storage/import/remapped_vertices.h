// `ooc-prep import --remap-ids`: vertices that the input calls by any integers or strings. They get
// dense ids, 0 to V - 1, in the ascending order of these.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/base/control.h"
#include "storage/dataset/dataset_writer.h"
#include "storage/import/edges/edge_source.h"
#include "storage/import/formats/inputs.h"
#include "storage/import/formats/table_reader.h"
#include "storage/import/ids/id_table.h"
#include "storage/import/ids/original_ids.h"
#include "storage/import/ids/string_ids.h"
#include "storage/import/import_memory.h"
#include "storage/import/rows/rows_by_vertex.h"
#include "storage/import/rows/vertex_order.h"
#include "storage/import/values/findings.h"
#include "storage/import/values/vertex_values.h"

namespace ooc {

// Whose the rows of features, labels and masks are: ImportInputs::ids says it, and so lists all
// vertices, or one of these.
struct RowIds {
  std::string column;   // of ids, in each of these tables; that of the first lists all vertices
  bool sorted = false;  // rows follow the ascending order of the ids in the edges
};

// The methods are called in the order that they stand in. One thread.
class RemappedVertices {
 public:
  RemappedVertices(FileSystem& files, const ImportInputs& inputs, const RowIds& rows,
                   ImportMemory& memory, const Control& control);

  // The column of ids in features, labels or a mask, which they are to be read without; empty where
  // another file has them. UsageError where nothing says whose the rows are.
  std::string id_column_of(const std::string& rows) const;
  // Opens a split, a mask without its column of ids.
  std::unique_ptr<TableReader> open_split(const std::string& input) const;
  // Opens the edges, after a look whether ids are strings. DataError for a matrix.
  std::unique_ptr<TableReader> open_edges(Findings& findings);
  // What lists all vertices; null where the edges do.
  TableReader* list() const { return list_.get(); }
  // Whether vertices may have no row in this table.
  bool may_lack_rows(const TableReader& rows) const;

  // Reads the ids, of `edges` where these list the vertices. `scratch` begins the names of scratch
  // files.
  void collect(TableEdgeSource& edges, std::string scratch);
  // How many they are, estimated where they don't fit the memory: then memory_parts() don't either.
  std::int64_t count() const { return names_ ? names_->count() : ids_->size(); }
  // What is held from now on, to be taken of the memory, with so many tables for sort_rows().
  std::vector<MemoryPart> memory_parts(std::int64_t tables) const;
  // Numbers the ids. Throws DataError for one that is listed twice.
  void finish(TableEdgeSource& edges, Findings& findings);
  std::int64_t size() const { return names_ ? names_->size() : ids_->size(); }
  // The edges with dense ids, in a scratch file. Throws DataError for ids that no vertex has.
  std::unique_ptr<EdgeSource> spool(TableEdgeSource& edges);
  // Puts the rows of a table in the order of dense ids. Null stays null.
  void sort_rows(std::unique_ptr<TableReader>& rows, const std::string& part);
  // The same with labels and masks; lists of strings give dense ids from now on.
  void sort_values(VertexValues& values);
  ListedIds listed() const { return {ids_.get(), names_.get()}; }
  // Writes what the input calls the vertices, in this order (empty: ascending).
  void write(DatasetWriter& writer, std::span<const VertexIndex> order,
             std::span<const VertexIndex> new_ids) const;

 private:
  std::string list_input() const;
  std::unique_ptr<TableReader> open_ids(const std::string& input);
  TextInput text_of(const std::string& input) const;
  bool holds_strings(const std::string& input) const;
  std::optional<StringIdFound> find_string(const std::string& input) const;
  void collect_names(const IdStream& ids);
  std::shared_ptr<const RowVertices> row_vertices(const TableReader& rows);
  std::string name_of(std::int64_t dense) const;

  FileSystem& files_;
  const ImportInputs& inputs_;
  const RowIds& rows_;
  ImportMemory& memory_;
  const Control& control_;
  std::string scratch_;
  std::unique_ptr<TableReader> list_;
  std::unique_ptr<OriginalIds> ids_;  // where they are integers
  std::unique_ptr<StringIds> names_;  // where they are strings
  std::map<std::string, std::shared_ptr<const RowVertices>> row_vertices_;  // by table of ids
};

}  // namespace ooc
