// Streams features into a dataset, block by block, in any vertex order.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "storage/dataset_writer.h"
#include "storage/control.h"

namespace ooc {

// Fills the buffer with the next rows, row-major; returns how many, fewer than fit only at the end.
using NextRows = std::function<std::int64_t(std::span<float> out)>;

// Writes `vertices` rows of `cols` columns. `order` holds the input row of each dataset row; empty:
// as they come. With an order the rows go through a dense file in the writer's scratch directory
// (vertices x cols x 4 bytes), which is gone afterwards.
void write_features(FileSystem& files, DatasetWriter& writer, std::int64_t vertices,
                    std::int64_t cols, const NextRows& next_rows, std::span<const VertexId> order,
                    const Control& control);

}  // namespace ooc
