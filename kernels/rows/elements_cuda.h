// A view whose elements are found by row and column in a few instructions, on a GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/spec/matrix_view.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc::cuda {

// Slices of kSliceWidth columns, or one of any width.
template <class T>
struct Elements {
  T* first;
  T* last;
  std::int64_t slice_stride;  // elements
  std::int64_t rows, cols, full, last_stride;
  int shift, last_slice;

  explicit Elements(const MatrixView& view)
      : first(view.slice_count() > 1 ? view.data<T>(0) : nullptr),
        last(view.data<T>(view.slice_count() - 1)),
        slice_stride(view.slices.slice_stride / static_cast<std::int64_t>(sizeof(T))),
        rows(view.rows),
        cols(view.cols),
        full(view.slice_width),
        last_stride(view.last_stride),
        shift(view.slice_count() > 1 ? kSliceShift : 31),
        last_slice(static_cast<int>(view.slice_count()) - 1) {
    OOC_CHECK(last_slice == 0 || view.slice_width == kSliceWidth);
  }
  __device__ T& at(std::int64_t row, std::int64_t col) const {
    const int slice = static_cast<int>(col >> shift);
    const std::int64_t in_slice = col - (static_cast<std::int64_t>(slice) << shift);
    return slice == last_slice ? last[row * last_stride + in_slice]
                               : first[slice * slice_stride + row * full + in_slice];
  }

 private:
  static constexpr int kSliceShift = 5;
  static_assert(kSliceWidth == 1 << kSliceShift);
};

}  // namespace ooc::cuda
