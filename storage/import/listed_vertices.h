// Vertices of a dataset that a file lists, by the ids that users have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/base/control.h"
#include "storage/dataset/dataset.h"
#include "storage/io/file.h"

namespace ooc {

// `input`: as open_table() takes it (storage/import/formats/table_reader.h), a column of ids: text
// or an array of strings where the dataset's ids are strings. The vertices in the dataset's order,
// each once, ascending. Holds the list, not the dataset's ids. DataError for what is no such list
// and for an id that no vertex has.
std::vector<std::uint32_t> listed_vertices(FileSystem& files, const Dataset& dataset,
                                           const std::string& input, const Control& control);

}  // namespace ooc
