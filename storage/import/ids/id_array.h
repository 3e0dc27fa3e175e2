// Ids that are strings, in NumPy's arrays of them: |S and U of either byte order, one or two
// dimensions, C order. Strings end before the zeros that pad them.
#pragma once

#include <memory>

#include "storage/import/decode/byte_source.h"
#include "storage/import/ids/id_table.h"

namespace ooc {

// The array as a table of integers, as open_id_table() gives them; all its rows are ids.
std::unique_ptr<TableReader> open_id_array(std::unique_ptr<ByteSource> source,
                                           const TextColumns& columns, StringIds& ids);

}  // namespace ooc
