// From a stream of edges to joined units: sorting outside memory, on all of TBB's threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "storage/base/control.h"
#include "storage/edges/edge_sorter.h"
#include "storage/import/edges/edge_source.h"
#include "storage/import/rows/vertex_order.h"

namespace ooc {

// Reads all of `source` into `sorter`, with the ids `new_ids` gives (empty: as they are), and
// finishes it. `data_bytes` is what an edge carries, `memory_bytes` for everything held meanwhile.
void sort_edges(EdgeSource& source, std::span<const VertexIndex> new_ids, std::size_t data_bytes,
                std::int64_t memory_bytes, EdgeSorter& sorter, const Control& control);

}  // namespace ooc
