// Puts rows that come in the input's order into a vertex tensor in the dataset's, within a given
// memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/base/control.h"
#include "storage/format/vertex_tensor.h"
#include "storage/import/rows/row_buckets.h"
#include "storage/import/rows/vertex_order.h"

namespace ooc {

// One thread drives it; the work runs on all of TBB's.
class RowPlacer {
 public:
  // `new_ids` holds the tensor's row of each input row; empty: rows are written as they come. Else
  // they are first thrown into buckets, each a run of the tensor's rows that fits the memory.
  RowPlacer(FileSystem& files, VertexTensorWriter& tensor, std::span<const VertexIndex> new_ids,
            const RowBuckets::Options& options);
  ~RowPlacer();
  // The next rows, without padding.
  void add(std::span<const std::byte> rows);
  // After the last row.
  void finish(std::string_view phase, const Control& control);

 private:
  VertexTensorWriter& tensor_;
  std::span<const VertexIndex> new_ids_;
  std::size_t row_bytes_;
  std::int64_t next_row_ = 0;
  std::unique_ptr<RowBuckets> buckets_;  // with an order
};

}  // namespace ooc
