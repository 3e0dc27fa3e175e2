// Reads an edge list into memory: [E, 2] (source, destination), or [2, E] in an array, as PyG saves
// edge_index. A [2, 2] array is read as [E, 2].
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "storage/edge_file.h"
#include "storage/control.h"
#include "storage/import/table_reader.h"

namespace ooc {

// In the input's order. Throws DataError (row or line, value) for a negative id, an id at or above
// `vertices` where that is given, and a table that is not two columns wide.
std::vector<Edge> read_edges(TableReader& table, std::optional<std::int64_t> vertices,
                             const Control& control);

// Largest id + 1. Throws DataError where that is not credible for so few edges.
std::int64_t vertices_of_edges(const std::vector<Edge>& edges, const std::string& name);

}  // namespace ooc
