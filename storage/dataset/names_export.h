// The parts of an export that hold ids, where these are strings (storage/dataset/dataset_export.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "storage/base/control.h"
#include "storage/dataset/dataset.h"

namespace ooc {

// All edges, in the order they are stored in: the header source,destination, then a line each.
// `visit` is called with every tile, in the same order.
void write_named_edges(FileSystem& files, const Dataset& dataset, const std::string& path,
                       const Control& control, const std::function<void(const TileView&)>& visit);

struct NameList {
  std::int64_t split = 0;  // of the vertices to list; 0: all of them, by their bare ids
  std::int64_t memory_bytes = 0;
};
// Ids of vertices, ascending, one in a line. How many.
std::int64_t write_names(FileSystem& files, const Dataset& dataset, const std::string& path,
                         const NameList& list, const Control& control);

}  // namespace ooc
