// Rows of a matrix that lies in slices: what kernels read and write. A vertex tensor's rows lie in
// slices of kSliceWidth columns (storage/format/tensor_layout.h); a parameter is one slice as wide
// as the matrix. A view owns nothing; the data outlive the call it is passed to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/spec/host_device.h"
#include "storage/base/types.h"

namespace ooc {

// Where slices of the same rows lie: those of full width equally far from each other, the last one,
// whose rows may be narrower, anywhere.
struct SlicedRows {
  std::byte* first = nullptr;     // row 0 of the first slice
  std::int64_t slice_stride = 0;  // bytes between two slices of full width
  std::byte* last = nullptr;      // row 0 of the last slice

  OOC_HOST_DEVICE std::byte* slice(std::int64_t slice, std::int64_t count) const {
    return slice + 1 == count ? last : first + slice * slice_stride;
  }
};
// Of a matrix in one piece.
inline SlicedRows one_slice(void* data) {
  return {static_cast<std::byte*>(data), 0, static_cast<std::byte*>(data)};
}

// Slices [begin, end) of `count`, the first one of them in place of slice 0; at(slice): where it
// lies.
template <class At>
SlicedRows sliced_rows(std::int64_t begin, std::int64_t end, std::int64_t count, At&& at) {
  SlicedRows rows;
  if (begin < end) rows.first = at(begin);
  if (begin + 1 < end && begin + 2 < count) rows.slice_stride = at(begin + 1) - rows.first;
  if (end == count) rows.last = at(count - 1);
  return rows;
}

struct MatrixView {
  DType dtype = DType::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t slice_width = 0;   // columns of every slice but the last
  std::int64_t last_stride = 0;   // elements between two rows of the last slice, padding included
  std::int64_t row_offset = 0;    // rows to skip from there
  SlicedRows slices = {};         // each a row-major chunk
  std::int64_t first_column = 0;  // of the view in its matrix: random numbers count from there

  OOC_HOST_DEVICE std::int64_t slice_count() const { return ceil_div(cols, slice_width); }
  OOC_HOST_DEVICE std::int64_t slice_cols(std::int64_t slice) const {
    const std::int64_t rest = cols - slice * slice_width;
    return rest < slice_width ? rest : slice_width;
  }
  // Elements between two rows of a slice.
  OOC_HOST_DEVICE std::int64_t stride(std::int64_t slice) const {
    return slice + 1 == slice_count() ? last_stride : slice_width;
  }
  // First element of the view's first row in a slice. T must match dtype.
  template <class T>
  OOC_HOST_DEVICE T* data(std::int64_t slice) const {
    const std::int64_t count = slice_count();
    const std::int64_t row = slice + 1 == count ? last_stride : slice_width;
    return reinterpret_cast<T*>(slices.slice(slice, count)) + row_offset * row;
  }
};

}  // namespace ooc
