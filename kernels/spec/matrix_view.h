// Rows of a matrix that lies in slices: what kernels read and write. A vertex tensor's rows lie in
// slices of kSliceWidth columns (storage/format/tensor_layout.h); a parameter is one slice as wide
// as the matrix. A view owns nothing; the pointer array and the data outlive the call it is passed
// to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "storage/base/types.h"

namespace ooc {

struct MatrixView {
  DType dtype = DType::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t slice_width = 0;   // columns of every slice but the last
  std::int64_t last_stride = 0;   // elements between two rows of the last slice, padding included
  std::int64_t row_offset = 0;    // rows to skip from the slice pointers
  void* const* slices = nullptr;  // slice_count() pointers, each to a row-major chunk
  std::int64_t first_column = 0;  // of the view in its matrix: random numbers count from there

  std::int64_t slice_count() const { return ceil_div(cols, slice_width); }
  std::int64_t slice_cols(std::int64_t slice) const {
    return std::min(slice_width, cols - slice * slice_width);
  }
  // Elements between two rows of a slice.
  std::int64_t stride(std::int64_t slice) const {
    return slice + 1 == slice_count() ? last_stride : slice_width;
  }
  // First element of the view's first row in a slice. T must match dtype.
  template <class T>
  T* data(std::int64_t slice) const {
    return static_cast<T*>(slices[slice]) + row_offset * stride(slice);
  }
};

}  // namespace ooc
