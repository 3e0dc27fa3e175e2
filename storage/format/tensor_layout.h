// How a V x d vertex tensor is cut into vertex chunks: blocks of rows, slices of columns.
// Used for files, for memory and by kernels; no dependencies.
#pragma once

#include <algorithm>

#include "storage/base/types.h"

namespace ooc {

inline constexpr std::int64_t kDefaultBlockRows = 16384;
inline constexpr std::int64_t kMaxBlockRows = 65536;  // an id inside a block or span is 16 bits
inline constexpr std::int64_t kSliceWidth = 32;

// A slice holds kSliceWidth columns, the last one the rest. `stride` is the columns a row of the
// slice takes in memory: the last slice is padded to a multiple of 8, unless the whole tensor has
// fewer than 8 columns. Padding is zero.
struct TensorLayout {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t block_rows = kDefaultBlockRows;

  std::int64_t block_count() const { return ceil_div(rows, block_rows); }
  std::int64_t slice_count() const { return ceil_div(cols, kSliceWidth); }
  // Rows of one block; the last block has what is left.
  std::int64_t rows_of(std::int64_t block) const {
    return std::min(block_rows, rows - block * block_rows);
  }
  std::int64_t slice_cols(std::int64_t slice) const {
    return std::min(kSliceWidth, cols - slice * kSliceWidth);
  }
  std::int64_t slice_stride(std::int64_t slice) const {
    return cols < 8 ? cols : round_up(slice_cols(slice), 8);
  }
};

}  // namespace ooc
