// Streams features into a dataset, in any vertex order and type, within a given memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "storage/base/control.h"
#include "storage/dataset/dataset_writer.h"
#include "storage/import/rows/vertex_order.h"

namespace ooc {

struct FeatureRows {
  std::int64_t vertices = 0;
  std::int64_t cols = 0;
  DType dtype = DType::kF32;  // to be stored as
  std::string name;           // of the input, for messages
  // Fills the buffer with the next rows, row-major; returns how many, fewer than fit only at the
  // end. Called by one thread at a time.
  std::function<std::int64_t(std::span<float> out)> next;
  // Works on rows that next() gave, in place; many threads. May be empty.
  std::function<void(std::span<float> rows)> transform;
};

// Writes the rows as the dataset's features. `new_ids` holds the dataset's row of each input row;
// empty: as they come. DataError for a value that is finite, but not as `dtype`.
void write_features(FileSystem& files, DatasetWriter& writer, const FeatureRows& rows,
                    std::span<const VertexIndex> new_ids, std::int64_t memory_bytes,
                    const Control& control);

}  // namespace ooc
