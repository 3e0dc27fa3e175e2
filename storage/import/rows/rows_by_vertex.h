// The rows of a table whose rows belong to vertices in any order, in the order of the vertices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/import/formats/table_reader.h"
#include "storage/import/rows/vertex_order.h"
#include "storage/io/file.h"

namespace ooc {

// The vertex of each row; no vertex twice.
using RowVertices = std::vector<VertexIndex>;

struct RowsByVertexOptions {
  std::shared_ptr<const RowVertices> row_vertices;
  std::int64_t vertices = 0;
  std::string scratch;  // the path of a file
  std::int64_t memory_bytes = 0;
};

// A vertex without a row has NaN in all columns. The first read() puts all rows into buckets
// (row_buckets.h).
std::unique_ptr<TableReader> rows_by_vertex(FileSystem& files, std::unique_ptr<TableReader> table,
                                            const RowsByVertexOptions& options);

}  // namespace ooc
