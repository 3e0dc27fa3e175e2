// What comes with the edges, one row an edge in the edges' order: weights, types, features. Tables
// that whoever imports reads in step with the edges.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "storage/format/manifest.h"
#include "storage/import/formats/inputs.h"
#include "storage/import/formats/table_reader.h"

namespace ooc {

// Null where there is none.
struct EdgeDataTables {
  std::unique_ptr<TableReader> weights;   // [E] or [E, 1], finite
  std::unique_ptr<TableReader> types;     // [E] or [E, 1], integers from 0 to 65,535
  std::unique_ptr<TableReader> features;  // [E, F], finite
};

// Throws DataError for tables of the wrong width.
EdgeDataTables open_edge_data(FileSystem& files, const ImportInputs& inputs);

// Read the next rows as TableReader::read() does; `first_row` is that of out[0], for messages.
// Throw DataError (row, value) for a weight or feature that is not finite, a type out of range.
std::int64_t read_edge_floats(TableReader& table, std::int64_t first_row, std::span<float> out);
std::int64_t read_edge_types(TableReader& table, std::int64_t first_row,
                             std::span<std::uint16_t> out);

}  // namespace ooc
