// What an import finds that was probably not meant, as warnings that say what to do.
#pragma once

#include <cstdint>
#include <string>

#include "storage/dataset/edge_output.h"
#include "storage/import/edges/edge_source.h"
#include "storage/import/formats/inputs.h"
#include "storage/import/formats/table_reader.h"
#include "storage/import/values/findings.h"

namespace ooc {

// Of arrays in the directory that play no part.
void warn_of_unused(const ImportInputs& inputs, Findings& findings);

// Whether text begins with a row of 0, 1, 2 and so on, as the names of columns without names are
// (pandas). Reads that row and rewinds.
bool begins_with_numbers(TableReader& table);
void warn_of_header(TableReader& table, Findings& findings);

// Of no edges, and of edges that all go one way. `undirected`: reverse ones are added.
void warn_of_directions(const EdgeCounts& counts, bool undirected, Findings& findings);

// Of weights that are negative or 0: they are right in few models.
void warn_of_weights(const WeightSigns& signs, const EdgeCounts& counts, Findings& findings);

// Of vertices that are there only because ids have gaps; `edges` names the input.
void warn_of_gaps(const EdgeCounts& counts, const std::string& edges, Findings& findings);

}  // namespace ooc
